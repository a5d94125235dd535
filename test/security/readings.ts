// The paths that different upstreams may read from the same request target. An exact upstream decodes nothing. The most
// lenient one decodes three times.

/** Returns the path that the most lenient upstream reads: decoded three times, in lower case, without dot segments. */
export function worstCase(target: string): string {
  return resolve(decode(pathOf(target), 3))
}

/**
 * Returns the paths that upstreams may read: decoded zero to three times, in lower case, without dot segments. Callers
 * must check all of them, because each can be under the guarded prefix.
 */
export function readings(target: string): string[] {
  const path = pathOf(target)
  return [0, 1, 2, 3].map(times => resolve(decode(path, times)))
}

export function isUnder(path: string, prefix: string): boolean {
  return path === prefix || path.startsWith(`${prefix}/`)
}

function pathOf(target: string): string {
  return target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '').replace(/[?#].*$/s, '')
}

function decode(path: string, times: number): string {
  let decoded = path
  for (let i = 0; i < times; i++) {
    decoded = decoded.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    )
  }
  // Some servers accept overlong UTF-8: two bytes for a character that needs only one byte.
  return decoded.replace(/[\xc0\xc1][\x80-\xbf]/g, ([lead = '', rest = '']) =>
    String.fromCharCode(((lead.charCodeAt(0) & 0x1f) << 6) | (rest.charCodeAt(0) & 0x3f)),
  )
}

function resolve(path: string): string {
  const resolved: string[] = []
  for (const part of path
    .toLowerCase()
    .replace(/[\0?#].*$/s, '')
    .split(/[/\\]/)) {
    const segment = part.replace(/;.*$/s, '').trimEnd()
    if (segment === '..') resolved.pop()
    // Windows ignores dots and spaces at the end of a file name.
    const name = segment.replace(/[. ]+$/, '')
    if (name !== '') resolved.push(name)
  }
  return `/${resolved.join('/')}`
}
