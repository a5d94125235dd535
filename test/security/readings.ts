// The ways in which upstreams interpret a request target, from exact to very lenient.

/** Where the laxest upstream would take a request target: decoded three times, lower-cased, parameters cut, resolved. */
export function worstCase(target: string): string {
  return resolve(decode(pathOf(target), 3))
}

/**
 * Every path that some upstream may take a target for: decoded never, once, twice or three times, before its
 * segments are resolved. One that decodes less may well be the one that arrives at the guarded place.
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
  // Overlong UTF-8: two bytes for what one says.
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
    // Windows drops the dots and spaces that a name ends in.
    const name = segment.replace(/[. ]+$/, '')
    if (name !== '') resolved.push(name)
  }
  return `/${resolved.join('/')}`
}
