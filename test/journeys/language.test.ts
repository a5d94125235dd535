// The gateway writes the texts of its own responses in the language that `server.language` selects.
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { catalog, messages, type RefusalCode } from '../../src/refusals/catalog.ts'
import { Refusal } from '../../src/refusals/refusal.ts'
import { call, newUser } from '../support/client.ts'
import { journey } from '../support/journey.ts'
import { embeddedSetup } from '../support/setups.ts'

const ascii = /^[\x20-\x7e]+$/
const codes = Object.keys(catalog) as RefusalCode[]

it.each(codes)('the refusal %s is the same in French and English, except for the text in `error`', code => {
  const [fr, en] = (['fr', 'en'] as const).map(language => {
    const { fields, body } = new Refusal(code, { reason: 'r', body: { a: 1 } }).response(language)
    return {
      names: fields.filter((_, i) => i % 2 === 0),
      body: JSON.parse(Buffer.from(body, 'latin1').toString()),
    }
  })
  expect(fr?.body).toEqual({ error: catalog[code].fr, a: 1 })
  expect(en?.body).toEqual({ error: catalog[code].en, a: 1 })
  expect(en?.names).toEqual(fr?.names)
  expect(catalog[code].en).toMatch(ascii)
  expect(catalog[code].en).not.toBe(catalog[code].fr)
})

it('every message has a French and an English text', () => {
  for (const { fr, en } of Object.values(messages)) {
    expect(en).toMatch(ascii)
    expect(en).not.toBe(fr)
  }
})

const yaml = (upstream: string) => `plans:
  - { name: free, quotas: { exports: 2/month } }
  - { name: pro, quotas: { exports: unlimited }, api_keys: 1 }
upstreams: { echo: { targets: ['${upstream}'] } }
routes:
  - { name: courses, path: /courses, upstream: echo, free_daily: true }
  - { name: exports, path: /exports, upstream: echo, quota: exports }
  - { name: pro, path: /pro, upstream: echo, plans: [pro] }
`

describe('a gateway with `server.language: en`', () => {
  const at = journey(embeddedSetup, { server: ', language: en' }, yaml)
  const errorOf = async (path: string, token?: string) => {
    const { body } = await call(at.gateway.url, 'GET', path, token === undefined ? {} : { token })
    return (body as { error?: string }).error
  }

  it('responds in English to clients, to operators and to malformed requests', async () => {
    const { url, admin, adminToken } = at.gateway
    expect(await errorOf('/nowhere')).toBe('Unknown route')
    expect(await errorOf('/courses')).toBe('Invalid or expired token')
    expect(await errorOf('/courses%2fx')).toBe('Invalid path')
    const { port } = new URL(url)
    expect(await rawResponse(Number(port), 'GET / HTTP/1.1\r\nbad header\r\n\r\n')).toMatch(
      /"error":"Invalid request"/,
    )
    expect((await call(admin, 'GET', '/admin/v1/users')).body).toEqual({ error: 'Unauthorized' })
    expect(await rawResponse(Number(new URL(admin).port), 'GET / HTTP/1.1\r\nbad header\r\n\r\n')).toMatch(
      /"error":"Invalid request"/,
    )
    const user = await newUser(at.gateway)
    const revoked = await call(admin, 'DELETE', `/admin/v1/users/${user.id}/sessions`, {
      token: adminToken,
    })
    expect(revoked.body).toEqual({ message: 'Sessions revoked' })
  })

  it('responds in English if the plan is insufficient or a limit is reached', async () => {
    const { access } = await newUser(at.gateway)
    expect(await errorOf('/pro', access)).toBe('Insufficient plan')
    await errorOf('/courses', access)
    expect(await errorOf('/courses', access)).toBe('Daily limit reached (plan free: 1 course/day)')
    for (let i = 0; i < 2; i++) await errorOf('/exports', access)
    expect(await errorOf('/exports', access)).toBe('Quota reached (plan free: 2 exports/month)')
  })

  it('confirms a registration in English', async () => {
    const body = { email: 'ada@example.com', password: 'correct horse battery' }
    const { body: created } = await call(at.gateway.url, 'POST', '/api/v1/auth/register', { body })
    expect(created).toMatchObject({ message: 'Account created' })
  })

  it('uses a new language immediately after a reload, even for cached refusals', async () => {
    const { gateway } = at
    const { access } = await newUser(gateway)
    await errorOf('/courses', access)
    expect(await errorOf('/courses', access)).toMatch(/^Daily limit/)
    const restore = await gateway.configure(['language: en', 'language: fr'])
    expect(await errorOf('/courses', access)).toBe(catalog.daily_limit_reached.fr)
    expect(await errorOf('/nowhere')).toBe(catalog.route_unknown.fr)
    await restore()
    expect(await errorOf('/courses', access)).toMatch(/^Daily limit/)
  })
})

/** Sends bytes, and returns all bytes of the response. */
function rawResponse(port: number, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    socket.on('data', chunk => {
      received += chunk
    })
    socket.on('end', () => resolve(received)).on('error', reject)
  })
}
