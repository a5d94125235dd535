import { randomBytes } from 'node:crypto'
import { EncryptJWT } from 'jose'
import { describe, expect, it } from 'vitest'
import { readCookies, writeCookie } from '../../src/providers/attempt-cookies.ts'
import { createAttempts, type StartedSignIn } from '../../src/providers/attempts.ts'
import { MovableClock } from './issuer.ts'

const key = randomBytes(32)
const started: StartedSignIn = {
  provider: 'google',
  issuer: 'https://accounts.google.com',
  clientId: `${'1'.repeat(12)}-${'a'.repeat(32)}.apps.example.com`,
  returnUrl: 'https://app.example.com/signed-in',
  pageState: 'the state of the page',
  codeChallenge: 'c'.repeat(43),
}

function open({ keys = [key], isSecure = true, clock = new MovableClock() } = {}) {
  const attempts = createAttempts({ keys: async () => keys, clock, isSecure })
  return {
    clock,
    attempts,
    begin: async (overrides: Partial<StartedSignIn> = {}, cookieHeader?: string) => {
      const begun = await attempts.begin({ ...started, ...overrides }, cookieHeader)
      if (begun === undefined) throw new Error('too long')
      return { ...begun, cookie: (begun.setCookies.at(-1) as string).split(';')[0] as string }
    },
  }
}

/** Stores and deletes cookies as `Set-Cookie` values require, and sends older cookies first, like a browser. */
class Browser {
  readonly cookies = new Map<string, string>()

  receive(setCookies: readonly string[]): void {
    for (const line of setCookies) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (/Max-Age=0/.test(line)) this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
  }

  get header(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  }
}

describe('the cookie of a sign-in', () => {
  it('contains everything about the sign-in, and new secrets for each sign-in', async () => {
    const { attempts, begin } = open()
    const { attempt, cookie } = await begin()
    expect(attempt).toEqual({
      ...started,
      state: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
      codeVerifier: expect.stringMatching(/^[\w-]{43}$/),
    })
    expect(await attempts.find(`other=1; ${cookie}`, attempt.state)).toMatchObject(attempt)
    const again = (await begin()).attempt
    const secrets = [attempt, again].flatMap(({ state, nonce, codeVerifier }) => [state, nonce, codeVerifier])
    expect(new Set(secrets).size).toBe(6)
  })

  it('is sent only to the host of the gateway, and its content is encrypted', async () => {
    const { attempt, setCookies } = await open().begin()
    expect(setCookies).toEqual([
      expect.stringMatching(
        /^__Host-peage-signin-[\w-]{8}=[\w.-]+; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax; Secure$/,
      ),
    ])
    expect(setCookies[0]).toContain(`-${attempt.state.slice(0, 8)}=`)
    const decoded = Buffer.from((setCookies[0] as string).replace(/^[^=]*=/, ''), 'base64url').toString(
      'latin1',
    )
    for (const text of [attempt.nonce, attempt.codeVerifier, started.pageState])
      expect(decoded).not.toContain(text)
  })

  it('over http has neither the name prefix `__Host-` nor the attribute `Secure`', async () => {
    const { attempts, begin } = open({ isSecure: false })
    const { attempt, setCookies, cookie } = await begin()
    expect(setCookies[0]).toMatch(
      /^peage-signin-[\w-]{8}=[\w.-]+; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax$/,
    )
    expect(await attempts.find(cookie, attempt.state)).toMatchObject(attempt)
    expect(await open().attempts.find(cookie, attempt.state)).toBeUndefined()
  })

  it('is deleted when the sign-in ends', async () => {
    const { attempts, begin } = open()
    const { attempt, setCookies } = await begin()
    const browser = new Browser()
    browser.receive(setCookies)
    browser.receive([attempts.end(attempt)])
    expect(browser.header).toBe('')
    expect(attempts.end(attempt)).toMatch(/; Path=\/; Max-Age=0; HttpOnly; SameSite=Lax; Secure$/)
  })

  it('expires after 10 minutes, even if the browser still sends it', async () => {
    const { attempts, begin, clock } = open()
    const { attempt, cookie } = await begin()
    clock.move(599_000)
    expect(await attempts.find(cookie, attempt.state)).toBeDefined()
    clock.move(1_000)
    expect(await attempts.find(cookie, attempt.state)).toBeUndefined()
  })

  it('can be read with the previous key, but not with another key', async () => {
    const { attempt, cookie } = await open().begin()
    const [current, other] = [randomBytes(32), randomBytes(32)]
    expect(await open({ keys: [current, key] }).attempts.find(cookie, attempt.state)).toMatchObject(attempt)
    expect(await open({ keys: [current, other] }).attempts.find(cookie, attempt.state)).toBeUndefined()
    const next = await open({ keys: [current, key] }).begin()
    expect(await open({ keys: [current] }).attempts.find(next.cookie, next.attempt.state)).toBeDefined()
  })

  it('is not found with another state, even if both states begin with the same characters', async () => {
    const { attempts, begin } = open()
    const { attempt, cookie } = await begin()
    const similar = attempt.state.slice(0, -1) + (attempt.state.endsWith('A') ? 'B' : 'A')
    for (const state of [similar, attempt.state.slice(0, 8), '', `${attempt.state} `, attempt.nonce])
      expect(await attempts.find(cookie, state)).toBeUndefined()
    expect(await attempts.find(undefined, attempt.state)).toBeUndefined()
  })

  it('is found among other cookies with the same name', async () => {
    const { attempts, begin } = open()
    const { attempt, cookie } = await begin()
    const [name = '', value] = cookie.split('=')
    const other = (await begin()).cookie.split('=')[1]
    const header = `${name}=junk; ${name}; ${name}=${other}; =x; ;; ${name}=${value}=; ${name}=${value}; ${name}=a.b.c.d.e`
    expect(await attempts.find(header, attempt.state)).toMatchObject(attempt)
  })

  it('is not accepted if its value has another purpose and was encrypted with the same key', async () => {
    const { attempts, begin, clock } = open()
    const { attempt, cookie } = await begin()
    const forged = await new EncryptJWT({
      ...attempt,
      iat: clock.now() / 1_000,
      exp: clock.now() / 1_000 + 600,
    })
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
      .encrypt(key)
    expect(await attempts.find(`${cookie.split('=')[0]}=${forged}`, attempt.state)).toBeUndefined()
  })
})

describe('a browser', () => {
  it('keeps the cookies of only the four newest sign-ins', async () => {
    const { attempts, begin, clock } = open()
    const browser = new Browser()
    const states: string[] = []
    for (let index = 0; index < 6; index += 1) {
      const { attempt, setCookies } = await begin({}, browser.header)
      browser.receive(setCookies)
      states.push(attempt.state)
      if (index % 2 === 1) clock.move(1_000)
    }
    const found = await Promise.all(
      states.map(async state => (await attempts.find(browser.header, state)) !== undefined),
    )
    expect(found).toEqual([false, false, true, true, true, true])
  })

  it('loses the oldest of five sign-ins, even if the oldest cookie is not the first in the request', async () => {
    const { begin, clock } = open()
    const cookies: string[] = []
    for (let index = 0; index < 4; index += 1) {
      cookies.push((await begin()).cookie)
      clock.move(1_000)
    }
    const [oldest = ''] = cookies
    const deleted = (await begin({}, cookies.toReversed().join('; '))).setCookies.slice(0, -1)
    expect(deleted).toEqual([writeCookie({ name: oldest.split('=')[0] as string, value: '' })])
  })

  it('loses unreadable sign-in cookies before readable ones', async () => {
    const { attempts, begin } = open()
    const browser = new Browser()
    const { attempt, setCookies } = await begin()
    browser.receive(setCookies)
    for (const name of ['junk0000', 'junk0001', 'junk0002'])
      browser.cookies.set(`__Host-peage-signin-${name}`, 'junk')
    browser.receive((await begin({}, browser.header)).setCookies)
    expect(browser.cookies.size).toBe(4)
    expect(browser.cookies.has('__Host-peage-signin-junk0000')).toBe(false)
    expect(await attempts.find(browser.header, attempt.state)).toBeDefined()
  })

  it('never has to send more than 8 KiB of sign-in cookies', async () => {
    const { attempts, begin } = open()
    const browser = new Browser()
    for (let index = 0; index < 6; index += 1) {
      const { attempt, setCookies } = await begin({ pageState: '😀'.repeat(512) }, browser.header)
      browser.receive(setCookies)
      expect(browser.header.length).toBeLessThan(8_192)
      expect(await attempts.find(browser.header, attempt.state)).toBeDefined()
    }
    expect(browser.cookies.size).toBe(2)
  })
})

describe('the state of a page', () => {
  it.each([
    ['ASCII', 'a'],
    ['quotes', '"'],
    ['backslashes', '\\'],
    ['Chinese', '語'],
    ['emoji', '😀'],
  ])('fits into a cookie if it has 512 characters of %s', async (_, character) => {
    const { attempts, begin } = open()
    const pageState = character.repeat(512)
    const long = {
      returnUrl: `https://app.example.com/${'p'.repeat(100)}`,
      issuer: `https://${'i'.repeat(80)}.example.com`,
    }
    const { attempt, setCookies, cookie } = await begin({ pageState, ...long })
    expect(Buffer.byteLength(setCookies[0] as string)).toBeLessThanOrEqual(4_096)
    expect((await attempts.find(cookie, attempt.state))?.pageState).toBe(pageState)
  })

  it('is refused if it does not fit into a cookie', async () => {
    const { attempts } = open()
    expect(await attempts.begin({ ...started, pageState: '\u0001'.repeat(512) }, undefined)).toBeUndefined()
  })
})

describe('the Cookie header', () => {
  it.each([
    ['__Host-peage-signin-abcdefgh=1', true, ['__Host-peage-signin-abcdefgh']],
    ['peage-signin-abcdefgh=1', true, []],
    ['peage-signin-abcdefgh=1', false, ['peage-signin-abcdefgh']],
    ['__Host-peage-signin-abcdefgh=1', false, []],
    ['__host-peage-signin-abcdefgh=1', true, []],
    ['__Host-peage-signin-abcdefg=1; __Host-peage-signin-abcdefghi=1; __Host-peage-signin-=1', true, []],
    ['__Host-peage-signin-abcd\r\nfg=1; __Host-peage-signin-abcd,fgh=1', true, []],
    ['x__Host-peage-signin-abcdefgh=1', true, []],
    [undefined, true, []],
  ])('%j with https %s contains only the valid sign-in cookies %j', (header, isSecure, names) => {
    expect(readCookies(header, isSecure).map(({ name }) => name)).toEqual(names)
  })
})
