// The admin API shows the running configuration and the last reload without secrets. All test secrets contain
// "planted".
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { call, newUser } from '../support/client.ts'
import { journey } from '../support/journey.ts'
import { embeddedSetup } from '../support/setups.ts'

const secretFile = join(mkdtempSync(join(tmpdir(), 'peage-test-')), 'secret')
writeFileSync(secretFile, 'planted-in-a-file-0123456789\n')

const admin = `, token: a-token-for-operators-0123456789, tokens: { aud: { token: planted-as-a-token-0123, may: read }, plain: planted-as-plain-token-1 }`
const rest = `
events: { url: 'https://billing.example/x', secret: whsec_cGxhbnRlZC1ldmVudC1zZWNyZXQtMDEyMzQ1Njc4OTA= }
upstreams:
  token: { targets: ['http://127.0.0.1:9'] }
routes:
  - name: one
    path: /one
    upstream: token
    headers:
      request:
        set:
          X-Team: blue
          X-Link: https://planted-user:planted-password@x.example/
          X-Api-Key: planted-as-field
          Cookie: planted-as-cookie
          X-From-File: \${file:${secretFile}}
          X-From-Default: \${NO_SUCH_VARIABLE:-planted-as-default}
          Authorization: Basic planted-as-basic
          X-Empty: \${NO_SUCH_VARIABLE:-}
`

describe('the running configuration', () => {
  const at = journey(
    embeddedSetup,
    { admin, auth: ', key_secret: planted-as-key-secret-0123456789abcdef' },
    () => rest,
  )
  const ask = async () => {
    const answer = await call(at.gateway.admin, 'GET', '/admin/v1/configuration', {
      token: 'planted-as-a-token-0123',
    })
    expect(answer.status).toBe(200)
    return answer.body as {
      values: { path: string; value: unknown; line: number | null; waits_for_restart?: true }[]
      last_reload: {
        ok: boolean
        problems: { line: number; column: number; path: string; text: string }[]
      } | null
    }
  }

  it('is shown with line numbers and defaults, but without secrets', async () => {
    const body = await ask()
    expect(JSON.stringify(body)).not.toContain('planted')
    expect(body.last_reload).toBeNull()
    const valueAt = (path: string) => body.values.find(value => value.path === path)
    const lines = readFileSync(at.gateway.file, 'utf8').split('\n')
    const lineOf = (text: string) => lines.findIndex(line => line.includes(text)) + 1
    expect(valueAt('routes[0].path')).toEqual({
      path: 'routes[0].path',
      value: '/one',
      line: lineOf('path: /one'),
    })
    expect(valueAt('upstreams.token.targets[0]')?.value).toBe('http://127.0.0.1:9')
    expect(valueAt('server.drain_timeout')).toMatchObject({ value: '2s', line: 1 })
    expect(valueAt('server.log.level')).toEqual({ path: 'server.log.level', value: 'info', line: null })
    expect(
      valueAt('routes[0].headers.request.set["X-Team"]') ?? valueAt('routes[0].headers.request.set.X-Team'),
    ).toMatchObject({
      value: 'blue',
    })
    for (const path of [
      'admin.token',
      'admin.tokens.aud.token',
      'admin.tokens.plain',
      'auth.key_secret',
      'routes[0].headers.request.set.X-Link',
      'events.secret',
      'routes[0].headers.request.set.Cookie',
      'routes[0].headers.request.set.X-From-File',
      'routes[0].headers.request.set.X-From-Default',
    ])
      expect([path, valueAt(path)?.value]).toEqual([path, '***'])
  })

  it('masks neither empty secrets nor the number in `auth.remember.tokens`', async () => {
    const { values } = await ask()
    const value = (path: string) => values.find(each => each.path === path)?.value
    expect({
      postgres: value('storage.postgres'),
      listen: value('storage.postgres_listen'),
      old: value('auth.key_secret_old'),
      header: value('routes[0].headers.request.set.X-Empty'),
      remembered: value('auth.remember.tokens'),
    }).toEqual({ postgres: '', listen: '', old: '', header: '', remembered: 50_000 })
  })

  it('can explain a request of a given plan or of a stored user without showing secrets', async () => {
    const explain = (body: object) =>
      call(at.gateway.admin, 'POST', '/admin/v1/explain', { body, token: 'planted-as-a-token-0123' })
    const { status, body } = await explain({ method: 'GET', path: '/one', as: 'pro' })
    expect(status).toBe(200)
    expect(JSON.stringify(body)).not.toContain('planted')
    expect(body).toMatchObject({
      request: { method: 'GET', path: '/one', as: 'pro' },
      route: 'one',
      status: null,
      upstream: { name: 'token', url: 'http://127.0.0.1:9/one' },
      headers: {
        request: { set: { 'x-team': 'blue', 'x-api-key': '***', cookie: '***', 'x-user-id': '3' } },
      },
    })
    const user = await newUser(at.gateway, 'premium')
    const as = { user_id: user.id }
    expect((await explain({ method: 'GET', path: '/one', as })).body).toMatchObject({
      request: { as: 'premium' },
      headers: { request: { set: { 'x-user-id': String(user.id) } } },
    })
    await at.gateway.sql('update users set is_active = 0 where id = $1', [user.id])
    expect((await explain({ method: 'GET', path: '/one', as })).body).toMatchObject({
      status: 401,
      upstream: null,
    })
    expect((await explain({ method: 'GET', path: '/one', as: { user_id: 99_999_999 } })).status).toBe(404)
    for (const bad of [
      { method: 'GET' },
      { method: 'GET', path: 'one' },
      { method: 'GET', path: '/one', as: 'gold' },
      { method: 'GET', path: '/one', as: null },
      { method: 'GET', path: '/one', as: { user_id: '1' } },
      { method: 'GET', path: '/one', as: { plan: 'free', used_today: -1 } },
      { method: 'GET', path: '/one', host: 'a b' },
    ])
      expect([bad, (await explain(bad)).status]).toEqual([bad, 400])
  })

  it('if a changed value needs a restart, still shows the old value, marked with `waits_for_restart`', async () => {
    await at.gateway.configure(
      ["postgres: ''", "postgres: 'postgres://other:planted@db/x'"],
      ['/one', '/two'],
    )
    const { values, last_reload } = await ask()
    expect(last_reload).toMatchObject({ ok: true, problems: [] })
    expect(values.find(({ path }) => path === 'routes[0].path')?.value).toBe('/two')
    expect(values.filter(value => value.waits_for_restart)).toEqual([
      { path: 'storage.postgres', value: '', line: 3, waits_for_restart: true },
    ])
    await at.gateway.configure(["'postgres://other:planted@db/x'", "''"])
    expect((await ask()).values.filter(value => value.waits_for_restart)).toEqual([])
  })

  it.each([
    ['an unknown key', /$/, '\nplanted_key: 1\n'],
    ['an unknown nested key', 'free_daily: 1', 'free_daily: 1, planted-key-2: planted-value'],
    ['a bad upstream', 'upstream: token', 'upstream: planted-upstream'],
    ['a short token', 'plain: planted-as-plain-token-1', 'plain: planted'],
    ['a token instead of its name', 'plain: planted-as-plain-token-1', '"planted/token+in=": plain'],
    ['broken YAML', /$/, '\n"planted: ['],
    ['a bad origin', 'path: /two', 'path: /two\n    cors: { origins: [planted.example] }'],
    ['a bad method', 'path: /two', 'path: /two\n    methods: [planted get]'],
    ['a bad header', 'X-Team: blue', '"planted header": blue'],
    ['a bad URL', 'http://127.0.0.1:9', 'http://planted:planted@127.0.0.1:9'],
  ])('shows why a reload with %s was refused, but quotes nothing from the file', async (_, from, to) => {
    const restore = await at.gateway.configure([from, to])
    const { last_reload, values } = await ask()
    await restore()
    expect(last_reload?.ok).toBe(false)
    expect(last_reload?.problems.length).toBeGreaterThan(0)
    expect(JSON.stringify([last_reload, values])).not.toContain('planted')
    for (const { line, column, text } of last_reload?.problems ?? [])
      expect([line > 0, column > 0, text === '']).toEqual([true, true, false])
  })

  // The role of a token is the word `read`, which the error message also contains. The gateway must not mask this word
  // in the message.
  it('does not mask the role of a token in error messages', async () => {
    const restore = await at.gateway.configure(['path: /two', 'path: "${file:/no/such/file}"'])
    const { last_reload } = await ask()
    await restore()
    expect(last_reload?.problems.map(({ text }) => text)).toEqual([
      expect.stringMatching(/read.*"\/no\/such\/file"/),
    ])
  })
})
