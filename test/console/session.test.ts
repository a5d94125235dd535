// Signing in to the console: what the cookie is good for, and what other sites' pages get from it.

import { readFile, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'

type Fields = Record<string, string | string[]>

interface Said {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
}

/** Not `fetch`, which sets `Host`, `Origin` and `Cookie` itself. */
function send(
  base: string,
  method: string,
  path: string,
  headers: Fields = {},
  body?: object,
): Promise<Said> {
  const text = body === undefined ? '' : JSON.stringify(body)
  const type = body === undefined ? {} : { 'content-type': 'application/json', 'content-length': text.length }
  return new Promise((resolve, reject) => {
    const sent = request(
      new URL(path, base),
      { method, headers: { ...type, ...headers }, agent: false },
      answer => {
        let read = ''
        answer.on('data', part => {
          read += part
        })
        answer.on('end', () =>
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text: read }),
        )
      },
    )
    sent.on('error', reject)
    sent.end(text)
  })
}

describe('a session of the console', () => {
  let gateway: TestGateway
  let upstream: Upstream
  let origin: string
  const api = '/admin/v1/users'

  beforeAll(async () => {
    upstream = await startUpstream()
    gateway = await startGateway(`upstreams: { echo: { targets: ['${upstream.url}'] } }
routes: [{ name: public, path: /public/*, upstream: echo, auth: none }]`)
    origin = new URL(gateway.admin).origin
  })
  afterAll(async () => {
    await gateway?.stop()
    await upstream?.close()
  })

  const signIn = (token = gateway.adminToken, headers: Fields = { origin }) =>
    send(gateway.admin, 'POST', '/console/session', headers, { token })

  async function cookieOf(): Promise<string> {
    const { status, headers } = await signIn()
    expect(status).toBe(204)
    return String(headers['set-cookie']).split(';')[0] ?? ''
  }

  it('is opened by a token, for eight hours, and stands for it until it is closed', async () => {
    const { headers } = await signIn()
    expect(headers['set-cookie']).toEqual([
      expect.stringMatching(/^peage-console=[\w-]{43}; Path=\/; Max-Age=28800; HttpOnly; SameSite=Strict$/),
    ])
    const cookie = await cookieOf()
    const shown = await send(gateway.admin, 'GET', '/console/session', { cookie })
    expect(JSON.parse(shown.text)).toMatchObject({ operator: 'token', may: 'all' })
    for (const path of [api, '/openapi.json'])
      expect((await send(gateway.admin, 'GET', path, { cookie })).status).toBe(200)
    expect((await send(gateway.admin, 'DELETE', '/console/session', { cookie, origin })).status).toBe(204)
    expect((await send(gateway.admin, 'GET', api, { cookie })).status).toBe(401)
    expect((await send(gateway.admin, 'DELETE', '/console/session', { origin })).status).toBe(204)
    const [entry] = await gateway.sql<{ operator: string; route: string }>(
      'select operator, route from admin_audit order by id desc limit 1',
    )
    expect(entry).toEqual({ operator: 'token', route: '/console/session' })
  })

  it('ends after eight hours, and with the name that does not fit it is none', async () => {
    const cookie = await cookieOf()
    const secure = cookie.replace('peage-console', '__Host-peage-console')
    expect((await send(gateway.admin, 'GET', api, { cookie: secure })).status).toBe(401)
    gateway.clock.at += 8 * 3_600_000 - 1
    expect((await send(gateway.admin, 'GET', api, { cookie })).status).toBe(200)
    gateway.clock.at += 1
    expect((await send(gateway.admin, 'GET', api, { cookie })).status).toBe(401)
  })

  it('changes nothing for a page of another origin, and needs no Origin beside a bearer', async () => {
    const cookie = await cookieOf()
    const patch = (headers: Fields) => send(gateway.admin, 'PATCH', `${api}/99`, headers, { plan: 'pro' })
    for (const headers of [
      {},
      { origin: 'null' },
      { origin: 'http://127.0.0.1:1' },
      { origin: 'https://evil.example' },
    ]) {
      expect([headers, (await patch({ cookie, ...headers })).status]).toEqual([headers, 403])
      expect([headers, (await signIn(gateway.adminToken, headers)).status]).toEqual([headers, 403])
    }
    expect((await patch({ cookie, origin })).status).toBe(404)
    expect((await patch({ cookie, authorization: `Bearer ${gateway.adminToken}` })).status).toBe(404)
    expect((await patch({ cookie, origin, authorization: 'Bearer wrong' })).status).toBe(401)
    for (const site of ['cross-site', 'same-site'])
      expect((await send(gateway.admin, 'GET', api, { cookie, 'sec-fetch-site': site })).status).toBe(403)
    for (const path of ['/console', '/console/session', api])
      expect((await send(gateway.admin, 'GET', path, { cookie, host: 'evil.example' })).status).toBe(403)
  })

  it('refuses the eleventh wrong token of a minute, and never a right one', async () => {
    gateway.clock.at += 60_000
    for (let count = 1; count <= 10; count += 1) expect((await signIn('wrong')).status).toBe(401)
    const over = await signIn('wrong')
    expect([over.status, over.headers['x-peage-error']]).toEqual([429, 'rate_limited'])
    expect((await signIn()).status).toBe(204)
    gateway.clock.at += 60_000
    expect((await signIn('wrong')).status).toBe(401)
  })

  it('is sent to no upstream, in however many fields', async () => {
    upstream.received.length = 0
    const cookie = ['a=b; peage-console=x', '__Host-peage-console=y', 'PEAGE-CONSOLE=z;c=d']
    await send(gateway.url, 'GET', '/public/x', { cookie })
    const sent = JSON.stringify(upstream.received[0]?.headers)
    expect(sent).not.toMatch(/peage-console/i)
    expect(sent).toContain('a=b')
    expect(sent).toContain('c=d')
  })

  it('ends with its token, though another has the same name', async () => {
    const cookie = await cookieOf()
    const before = await readFile(gateway.file, 'utf8')
    await writeFile(gateway.file, before.replace(gateway.adminToken, 'another-token-for-operators-0123'))
    await gateway.reload()
    expect((await send(gateway.admin, 'GET', api, { cookie })).status).toBe(401)
    await writeFile(gateway.file, before)
    await gateway.reload()
  })

  it('is not needed for the page, whose files are compressed, kept for a year, and nobody else’s', async () => {
    const page = await send(gateway.admin, 'GET', '/console')
    expect(page.headers).toMatchObject({
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      vary: 'accept-encoding',
    })
    expect(page.headers['content-security-policy']).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    )
    const paths = [...page.text.matchAll(/"(\/console\/assets\/[^"]+)"/g)].map(([, path = '']) => path)
    expect(paths.length).toBe(3)
    for (const path of paths) {
      const { status, headers } = await send(gateway.admin, 'GET', path, { 'accept-encoding': 'gzip, br' })
      expect([status, headers['content-encoding'], headers.vary]).toEqual([200, 'br', 'accept-encoding'])
      expect(headers['cache-control']).toBe('public, max-age=31536000, immutable')
      expect(headers['x-content-type-options']).toBe('nosniff')
    }
    expect((await send(gateway.admin, 'GET', '/console/assets/manifest.json')).status).toBe(404)
  })
})
