// The fields that say who calls, in every spelling that an upstream may fold into one.

/** Headers that an upstream may take for the caller's identity. Only the gateway may set them. */
export const identityNames = new Set(['x-user-id', 'x-user-plan', 'x-user-email', 'x-peage-assertion'])

/** A field name as the laxest upstream reads it: CGI, WSGI and PHP fold what is between the words. */
export function canonical(name: string): string {
  return name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
}
