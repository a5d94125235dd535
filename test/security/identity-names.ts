// The headers that contain the caller's identity, in every spelling that an upstream may treat as equal.

/** Headers that an upstream may take for the caller's identity. Only the gateway may set them. */
export const identityNames = new Set(['x-user-id', 'x-user-plan', 'x-user-email', 'x-peage-assertion'])

/** The header name as the most lenient upstream reads it. CGI, WSGI and PHP replace the separators between words. */
export function canonical(name: string): string {
  return name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
}
