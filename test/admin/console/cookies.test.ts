// Tests how the console's cookie is read and set.
import { describe, expect, it } from 'vitest'
import { readCookies, writeCookie } from '../../../src/admin/console/cookies.ts'

describe('the cookie of the console', () => {
  it('is found only if its name matches exactly, including upper and lower case', () => {
    const header =
      'a=b; peage-console=plain; __Host-peage-console=secure; peage-console=again; Peage-Console=other'
    expect(readCookies(header, false)).toEqual(['plain', 'again'])
    expect(readCookies(header, true)).toEqual(['secure'])
    expect(readCookies(undefined, true)).toEqual([])
    expect(readCookies('peage-console=a=b', false)).toEqual(['a=b'])
  })

  it('lasts eight hours, is HttpOnly and SameSite=Strict, and has the __Host- prefix over HTTPS', () => {
    expect(writeCookie('x', false)).toBe('peage-console=x; Path=/; Max-Age=28800; HttpOnly; SameSite=Strict')
    expect(writeCookie('x', true)).toBe(
      '__Host-peage-console=x; Path=/; Max-Age=28800; HttpOnly; SameSite=Strict; Secure',
    )
    expect(writeCookie('', false)).toBe('peage-console=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict')
  })
})
