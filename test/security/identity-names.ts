// The names of the headers that contain the caller's identity, and a function that unifies their spellings.

/** Headers that an upstream may take for the caller's identity. Only the gateway may set them. */
export const identityNames = new Set([
  'x-user-id',
  'x-user-plan',
  'x-user-email',
  'x-user-key-id',
  'x-user-scopes',
  'x-peage-assertion',
])

/** Returns the header name as the most lenient upstream reads it. CGI, WSGI and PHP treat all separators as equal. */
export function canonical(name: string): string {
  return name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
}
