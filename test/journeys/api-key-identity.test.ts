// The upstream, the log, the notices and the record of a key show which API key made a request.
import { expect, it } from 'vitest'
import { call, giveKey, newUser, type TestUser } from '../support/client.ts'
import { journey } from '../support/journey.ts'
import { codeTo, kindsTo, mailSection } from '../support/mailed.ts'
import { describeOverSetups } from '../support/setups.ts'

const yaml = (more: string) => (upstream: string) =>
  `plans:
  - { name: free }
  - { name: pro, api_keys: 5 }
upstreams: { echo: { targets: ['${upstream}'] } }
routes:
  - { name: read, path: /read, upstream: echo, scope: 'data:read', identity_assertion: true }
  - { name: write, path: /write, upstream: echo, scope: 'data:write' }
  - { name: optional, path: /optional, upstream: echo, auth: optional, scope: 'data:read', identity_assertion: true }
  - { name: public, path: /public, upstream: echo, auth: none }
${mailSection(more)}`

const claimsOf = (token: unknown) =>
  JSON.parse(Buffer.from(String(token).split('.')[1] ?? '', 'base64url').toString()) as Record<
    string,
    unknown
  >

describeOverSetups('a request with an API key', setup => {
  const at = journey(setup, {}, yaml(', notices: true'))
  async function create(user: TestUser, scopes?: string[]) {
    const body = { name: 'a <name> of the user', scopes }
    const answer = await call(at.gateway.url, 'POST', '/api/v1/auth/keys', { token: user.access, body })
    return answer.body as { id: string; key: string }
  }
  const forged = { 'X-User-Key-Id': 'forged', x_user_scopes: 'forged', 'X.User.Scopes': 'forged' }
  async function received(path: string, headers: Record<string, string>) {
    at.upstream.received.length = 0
    const { status } = await call(at.gateway.url, 'GET', path, { headers: { ...forged, ...headers } })
    const [seen] = at.upstream.received
    expect(JSON.stringify(seen?.rawHeaders)).not.toContain('forged')
    const fields = seen?.headers ?? {}
    const assertion = fields['x-peage-assertion']
    const { key_id, scope } = assertion === undefined ? {} : claimsOf(assertion)
    return { status, id: fields['x-user-key-id'], scopes: fields['x-user-scopes'], key_id, scope }
  }

  it('gives the upstream the id and the scopes of a named key, but nothing about other credentials', async () => {
    const user = await newUser(at.gateway, 'pro')
    const all = await create(user)
    const scoped = await create(user, ['data:write', 'data:read'])
    const apiToken = `key of ${user.email}`
    await giveKey(at.gateway, user, apiToken)
    const none = { id: undefined, scopes: undefined, key_id: undefined, scope: undefined }
    const text = 'data:write data:read'
    for (const path of ['/read', '/optional'])
      for (let round = 0; round < 2; round += 1) {
        const by = (headers: Record<string, string>) => received(path, headers)
        expect(await by({ 'x-api-key': all.key })).toEqual({
          status: 200,
          ...none,
          id: all.id,
          key_id: all.id,
        })
        const shown = { id: scoped.id, scopes: text, key_id: scoped.id, scope: text }
        expect(await by({ 'x-api-key': scoped.key })).toEqual({ status: 200, ...shown })
        expect(await by({ 'x-api-key': apiToken })).toEqual({ status: 200, ...none })
        expect(await by({ authorization: `Bearer ${user.access}` })).toEqual({ status: 200, ...none })
      }
    expect(await received('/optional', {})).toEqual({ status: 200, ...none })
    expect(await received('/public', { 'x-api-key': scoped.key })).toEqual({ status: 200, ...none })
  })

  it('has the id of its named key in the log line, even if the request is refused', async () => {
    const user = await newUser(at.gateway, 'pro')
    const { id, key } = await create(user, ['data:read'])
    const apiToken = `key of ${user.email}`
    await giveKey(at.gateway, user, apiToken)
    at.gateway.log.length = 0
    for (const [path, header] of [
      ['/read', key],
      ['/write', key],
      ['/api/v1/auth/keys', key],
      ['/read', apiToken],
    ] as const)
      await call(at.gateway.url, 'GET', path, { headers: { 'x-api-key': header } })
    const lines = () =>
      at.gateway.log
        .map(line => JSON.parse(line) as Record<string, unknown>)
        .filter(({ msg }) => msg === 'request')
    await expect.poll(() => lines().length).toBe(4)
    expect(lines().map(({ decision, key_id }) => [decision, key_id])).toEqual([
      ['forwarded', id],
      ['scope_insufficient', id],
      ['bearer_required', id],
      ['forwarded', undefined],
    ])
    expect(at.gateway.log.join('')).not.toContain(key)
  })

  it('is recorded as a use of the key within 1 s, even if the scope guard refuses the request', async () => {
    const user = await newUser(at.gateway, 'pro')
    const { key } = await create(user, ['data:read'])
    await giveKey(at.gateway, user, `used ${user.email}`)
    const used = async () => {
      const { body } = await call(at.gateway.url, 'GET', '/api/v1/auth/keys', { token: user.access })
      return (body.keys as { last_used_at: string | null }[]).map(({ last_used_at }) => last_used_at)
    }
    expect(await used()).toEqual([null, null])
    const headers = [key, `used ${user.email}`].map(each => ({ 'x-api-key': each }))
    const statuses = headers.map(each => call(at.gateway.url, 'GET', '/write', { headers: each }))
    expect((await Promise.all(statuses)).map(({ status }) => status)).toEqual([403, 200])
    const now = new Date(at.gateway.clock.at).toISOString()
    await expect.poll(used, { timeout: 1_000 }).toEqual([now, now])
  })

  it('is refused after a password reset that verified the email, but accepted if the email was already verified', async () => {
    for (const isVerified of [false, true]) {
      const user = await newUser(at.gateway, 'pro')
      if (isVerified)
        await at.gateway.sql('update users set email_verified_at = now() where id = $1', [user.id])
      const { key } = await create(user)
      const apiToken = `reset ${user.email}`
      await giveKey(at.gateway, user, apiToken)
      const post = (path: string, body: object) =>
        call(at.gateway.url, 'POST', `/api/v1/auth/password/${path}`, { body })
      await post('forgot', { email: user.email })
      const { code } = await codeTo(at.gateway, user.email)
      expect(
        (await post('reset', { email: user.email, code, new_password: 'un nouveau mot de passe' })).status,
      ).toBe(200)
      for (const each of [key, apiToken]) {
        const { status } = await call(at.gateway.url, 'GET', '/read', { headers: { 'x-api-key': each } })
        expect(status).toBe(isVerified ? 200 : 401)
      }
    }
  })

  it('each new named key and each new key `api-token` causes one notice; a refused creation causes no notice', async () => {
    const user = await newUser(at.gateway, 'pro')
    await create(user)
    await call(at.gateway.url, 'POST', '/api/v1/user/api-token', { token: user.access })
    for (const body of [{}, { name: 'x', scopes: [] }])
      await call(at.gateway.url, 'POST', '/api/v1/auth/keys', { token: user.access, body })
    expect(await kindsTo(at.gateway, user.email)).toEqual(['api_key_created', 'api_key_created'])
  })
})

describeOverSetups('a new API key with mail.notices: false', setup => {
  const at = journey(setup, {}, yaml(', notices: false'))
  it('causes no notice to the user', async () => {
    const user = await newUser(at.gateway, 'pro')
    const body = { name: 'CI' }
    expect(
      (await call(at.gateway.url, 'POST', '/api/v1/auth/keys', { token: user.access, body })).status,
    ).toBe(201)
    expect(
      (await call(at.gateway.url, 'POST', '/api/v1/user/api-token', { token: user.access })).status,
    ).toBe(201)
    expect(await kindsTo(at.gateway, user.email)).toEqual([])
  })
})
