// Finds the browser and the operating system in a `User-Agent` header. In each list, the first pattern that matches
// wins.
export interface Device {
  readonly browser: string
  /** The operating system. Undefined if the header contains no known system. */
  readonly system: string | undefined
}

const browsers: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/\bEdg(?:e|A|iOS)?\//, 'Edge'],
  [/\b(?:OPR|OPT|Opera)\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\bVivaldi\//, 'Vivaldi'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/\b(?:Chrome|CriOS|Chromium)\//, 'Chrome'],
  [/\bVersion\/\S+ .*\bSafari\//, 'Safari'],
]

const systems: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b|\bMacintosh\b/, 'macOS'],
  [/\bLinux\b/, 'Linux'],
]

/**
 * Returns the browser and the operating system that a `User-Agent` names. If the browser is unknown, the result has the
 * program name at the start of the header instead, for example `curl`.
 * @returns undefined if the header contains neither a known browser nor a program name
 */
export function deviceOf(userAgent: string | null): Device | undefined {
  const text = userAgent ?? ''
  const nameIn = (list: typeof browsers) => list.find(([pattern]) => pattern.test(text))?.[1]
  const [program] = /^(?!Mozilla\/)[\p{L}\p{N}][\p{L}\p{N} ._-]{0,39}/u.exec(text) ?? []
  const browser = nameIn(browsers) ?? program?.trim()
  return browser === undefined ? undefined : { browser, system: nameIn(systems) }
}
