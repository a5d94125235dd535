// Tests how the console's cookie is read, set, and removed from requests to upstreams.
import { describe, expect, it } from 'vitest'
import { readCookies, withoutConsoleCookies, writeCookie } from '../../../src/admin/console/cookies.ts'

describe('the cookie of the console', () => {
  it('is read only by its exact name', () => {
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

  it.each([
    ['a=b', 'a=b'],
    ['peage-console=x', ''],
    ['a=b; peage-console=x; c=d', 'a=b; c=d'],
    ['__Host-peage-console=x; a=b', 'a=b'],
    ['a=b;peage-console=x', 'a=b'],
    ['PEAGE-Console=x; a=b', 'a=b'],
    ['__host-Peage-console = x', ''],
    ['peage-console; a=b', 'a=b'],
    ['my-peage-console=x; peage-console-2=y', 'my-peage-console=x; peage-console-2=y'],
    ['a="peage-console=x"', 'a="peage-console=x"'],
  ])('is removed from the Cookie header %j, and other cookies stay', (header, rest) => {
    expect(withoutConsoleCookies(header)).toBe(rest)
  })
})
