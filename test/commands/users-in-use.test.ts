// `peage users …` while a gateway has the embedded database: through its admin listener, or a sentence on why not.
import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createSessionStore } from '../../src/accounts/session-store.ts'
import { systemClock } from '../../src/clock.ts'
import { loadConfig } from '../../src/config/load.ts'
import { createLogger } from '../../src/observability/logger.ts'
import { type RunningServer, startServer } from '../../src/server/start-server.ts'
import { openStorage, type Storage } from '../../src/storage/open.ts'
import { makeDatabase } from '../support/embedded.ts'
import { signIn, storedToken } from '../support/sessions.ts'
import { listen } from '../support/upstream.ts'
import { json } from './peage.ts'
import { folder, peage, writeConfiguration } from './users-setup.ts'

const token = 'a-token-for-operators-0123456789'

interface Gateway {
  server: RunningServer
  backing: Storage
}

/** A gateway on the folder. This process holds its lock and is alive, so every command finds the folder locked. */
async function startOn(cwd: string, admin: string): Promise<Gateway> {
  const file = writeConfiguration(cwd, {
    name: 'running.yaml',
    admin: `server: { listen: '127.0.0.1:0' }\n${admin}`,
  })
  const loaded = loadConfig({ file: join(cwd, file), env: {} })
  if ('problems' in loaded) throw new Error(JSON.stringify(loaded.problems))
  await makeDatabase(join(cwd, 'data'))
  let backing: Storage | undefined
  const server = await startServer({
    config: loaded.config,
    clock: systemClock,
    logger: await createLogger({ level: 'silent', requests: false }, process.stdout),
    open: async (...parts) => {
      backing = await openStorage(...parts)
      return backing
    },
  })
  return { server, backing: backing as unknown as Storage }
}

describe('peage users, where a gateway has the folder', () => {
  const cwd = folder()
  let gateway: Gateway
  const users = (...words: string[]) => peage(cwd, ['users', ...words], 'un mot de passe')
  /** The port that the running gateway got, which the operator's configuration names. */
  const port = () => new URL(String(gateway.server.adminAddress)).port

  beforeAll(async () => {
    gateway = await startOn(cwd, `admin: { listen: '127.0.0.1:0', token: ${token} }`)
    writeConfiguration(cwd, { admin: `admin: { listen: '127.0.0.1:${port()}', token: ${token} }` })
    await gateway.backing.database.query(
      `insert into users (email, password_hash, plan, is_active)
       select 'u' || n || '@example.com', 'x', case when n % 2 = 0 then 'pro' else 'free' end, case when n = 3 then 0 else 1 end
         from generate_series(1, 250) n`,
    )
    const sessions = createSessionStore(gateway.backing.database)
    const expiresAt = new Date(Date.now() + 60_000)
    for (const tokenHash of ['a', 'b'])
      await sessions.create(5, 0, storedToken(tokenHash, expiresAt), signIn())
  })
  afterAll(() => gateway?.server.stop())

  it('list goes through every page of the admin API, and filters', async () => {
    const all = json(await users('list', '--json')).users
    expect(all.map(({ id }: { id: number }) => id)).toEqual(Array.from({ length: 250 }, (_, i) => i + 1))
    expect(all[0]).not.toHaveProperty('password_hash')
    expect(json(await users('list', '--plan', 'pro', '--json')).users).toHaveLength(125)
    expect(json(await users('list', '--email', 'U8@example.com', '--json')).users).toMatchObject([{ id: 8 }])
    expect((await users('list')).stdout.trimEnd().split('\n')).toHaveLength(251)
  })

  it('show prints the same by id and by email, and the same as the database has it, inactive too', async () => {
    const [row] = await gateway.backing.database.query<{ created_at: Date }>(
      'select id, email, plan, is_active, daily_usage, last_usage_date, created_at, email_verified_at from users where id = 3',
    )
    const expected = JSON.parse(JSON.stringify(row))
    expect(expected.is_active).toBe(0)
    expect(json(await users('show', '3', '--json'))).toEqual(expected)
    expect(json(await users('show', 'U3@example.com', '--json'))).toEqual(expected)
    expect((await users('show', '3')).stdout).toContain(`created   ${row?.created_at.toISOString()}\n`)
  })

  it('set-plan, activate and deactivate change the record of the running gateway', async () => {
    expect(await users('set-plan', '1', 'premium')).toEqual({
      exit: 0,
      stdout: 'user 1 (u1@example.com) is on plan premium\n',
      stderr: '',
    })
    expect(json(await users('deactivate', 'u1@example.com', '--json'))).toMatchObject({ id: 1, is_active: 0 })
    const record = () => gateway.backing.database.query('select plan, is_active from users where id = 1')
    expect(await record()).toEqual([{ plan: 'premium', is_active: 0 }])
    expect((await users('activate', '1')).stdout).toBe('user 1 (u1@example.com) is active\n')
    expect(await record()).toEqual([{ plan: 'premium', is_active: 1 }])
    const audit =
      'select operator, channel, method, changes, previous from admin_audit where user_id = 1 order by id'
    const entry = { operator: 'token', channel: 'cli', method: 'PATCH' }
    expect(await gateway.backing.database.query(audit)).toEqual([
      { ...entry, changes: { plan: 'premium' }, previous: { plan: 'free' } },
      { ...entry, changes: { is_active: 0 }, previous: { is_active: 1 } },
      { ...entry, changes: { is_active: 1 }, previous: { is_active: 0 } },
    ])
  })

  it('sessions shows the active ones and revoke-sessions leaves none', async () => {
    const { sessions } = json(await users('sessions', '5', '--json'))
    expect(sessions).toHaveLength(2)
    expect(sessions[0].expires_at).toMatch(/^\d{4}-.*Z$/)
    expect((await users('sessions', '5')).stdout.split('\n')).toHaveLength(4)
    expect((await users('revoke-sessions', 'u5@example.com')).stdout).toBe(
      'every session of user 5 (u5@example.com) is revoked\n',
    )
    expect(json(await users('sessions', '5', '--json'))).toEqual({ sessions: [] })
  })

  it.each([['show'], ['set-plan', 'pro'], ['activate'], ['deactivate'], ['sessions'], ['revoke-sessions']])(
    '%s says so where there is no such user',
    async (name, ...more) => {
      for (const [who, which] of [
        ['0', 'user 0'],
        ['999', 'user 999'],
        ['no+body@example.com', 'user with the email no+body@example.com'],
      ] as const) {
        expect(await users(name, who, ...more)).toEqual({
          exit: 1,
          stdout: '',
          stderr: `error: there is no ${which}: peage users list shows who there is\n`,
        })
      }
    },
  )

  const inUse = `error: the data folder ${join(cwd, 'data')} is in use by process ${process.pid}, which`

  it('create, set-password, reset-usage, export and delete do it through the running gateway', async () => {
    expect(await users('create', 'new@example.com', '--plan', 'pro', '--password-stdin')).toMatchObject({
      exit: 0,
      stdout: expect.stringContaining('(new@example.com) is created, on plan pro'),
    })
    const again = await users('create', 'new@example.com', '--password-stdin')
    expect(again.stderr).toContain('the email is in use')
    expect(await users('set-password', 'new@example.com', '--password-stdin')).toMatchObject({
      exit: 0,
    })
    expect((await users('reset-usage', 'new@example.com')).stdout).toContain('has used nothing today')
    expect(json(await users('export', 'new@example.com'))).toMatchObject({
      user: { email: 'new@example.com' },
    })
    expect(await users('delete', 'new@example.com', '--yes')).toMatchObject({ exit: 0 })
    expect((await users('show', 'new@example.com')).exit).toBe(1)
  })

  it.each(['0.0.0.0', '[::ffff:127.0.0.1]', 'localhost'])(
    'reaches a listener that the file puts on %s',
    async host => {
      const file = writeConfiguration(cwd, {
        name: 'host.yaml',
        admin: `admin: { listen: '${host}:${port()}', tokens: { none: '', ops: ${token} } }`,
      })
      expect(await users('show', '2', '-c', file)).toMatchObject({ exit: 0 })
    },
  )

  describe('and tokens have roles', () => {
    const names = ['reader', 'helper', 'boss']
    const [read, support, all] = names.map(name => `a-token-for-the-${name}-0123456789`) as [
      string,
      string,
      string,
    ]
    let roles: Gateway
    const place = folder()
    const users = (...words: string[]) => peage(place, ['users', ...words])
    const writeTokens = (tokens: string) => {
      const { host } = new URL(String(roles.server.adminAddress))
      writeConfiguration(place, { admin: `admin: { listen: '${host}', tokens: { ${tokens} } }` })
    }
    const tokens = `reader: { token: ${read}, may: read }, helper: { token: ${support}, may: support }`

    beforeAll(async () => {
      roles = await startOn(place, `admin: { listen: '127.0.0.1:0', tokens: { ${tokens}, boss: ${all} } }`)
      await roles.backing.database.query(
        "insert into users (email, password_hash) values ('a@example.com', 'x')",
      )
    })
    afterAll(() => roles?.server.stop())

    it('takes the first of the file that may do what is asked', async () => {
      writeTokens(`${tokens}, boss: ${all}`)
      for (const words of [
        ['show', '1'],
        ['export', '1'],
        ['reset-usage', '1'],
        ['set-plan', '1', 'pro'],
      ])
        expect(await users(...words)).toMatchObject({ exit: 0 })
      expect(
        await roles.backing.database.query('select operator, method, route from admin_audit order by id'),
      ).toEqual([
        { operator: 'helper', method: 'GET', route: '/admin/v1/users/:id/export' },
        { operator: 'helper', method: 'POST', route: '/admin/v1/users/:id/reset-usage' },
        { operator: 'boss', method: 'PATCH', route: '/admin/v1/users/:id' },
      ])
    })

    it('explain --user asks through it for the record', async () => {
      const { stdout } = await peage(place, ['explain', 'GET', '/one', '--user', '1'])
      expect(stdout).toContain('GET /one  at localhost, as pro, user 1, email not verified\n')
    })

    it('says where none of them may', async () => {
      writeTokens(tokens)
      const { exit, stderr } = await users('set-plan', '1', 'free')
      expect(exit).toBe(1)
      expect(stderr).toContain(
        'which cannot be asked, as no token of gateway.yaml may do this (changeUser): stop',
      )
    })
  })

  describe('and the admin listener is no way to it', () => {
    let other: Server | undefined
    afterEach(() => {
      other?.closeAllConnections()
      other?.close()
      other = undefined
    })

    const remedy = ': stop it, or run it with an admin listener and a token that other.yaml has too\n'

    async function said(admin: string): Promise<string> {
      const file = writeConfiguration(cwd, { name: 'other.yaml', admin })
      const { exit, stdout, stderr } = await users('list', '-c', file)
      expect({ exit, stdout }).toEqual({ exit: 1, stdout: '' })
      expect(stderr.startsWith(inUse)).toBe(true)
      expect(stderr.endsWith(remedy)).toBe(true)
      return stderr.slice(inUse.length + 1, -remedy.length)
    }

    it('says that the file has no admin section, no token, or no port', async () => {
      expect(await said('')).toBe('cannot be asked, as other.yaml has no admin section')
      expect(await said(`admin: { listen: '127.0.0.1:1' }`)).toBe(
        'cannot be asked, as other.yaml has no admin.token',
      )
      expect(await said(`admin: { listen: '127.0.0.1:1', token: "\${PEAGE_ADMIN_TOKEN:-}" }`)).toBe(
        'cannot be asked, as admin.token in other.yaml is empty (set the variable PEAGE_ADMIN_TOKEN, as for the gateway)',
      )
      expect(await said(`admin: { listen: '127.0.0.1:0', token: ${token} }`)).toBe(
        'cannot be asked, as admin.listen in other.yaml leaves the port to the system',
      )
    })

    it('says where nothing listens', async () => {
      expect(await said(`admin: { listen: '127.0.0.1:1', token: ${token} }`)).toBe(
        'does not answer at http://127.0.0.1:1 (connect ECONNREFUSED 127.0.0.1:1)',
      )
    })

    it('asks on the loopback of IPv6 where the file listens on all of it', async () => {
      expect(await said(`admin: { listen: '[::]:1', token: ${token} }`)).toMatch(
        /^does not answer at http:\/\/\[::1\]:1 \(/,
      )
    })

    it('says that the token is not the gateway’s', async () => {
      const address = gateway.server.adminAddress
      expect(await said(`admin: { listen: '127.0.0.1:${port()}', token: another-${token} }`)).toBe(
        `does not take the token that other.yaml has for its admin listener at ${address}`,
      )
    })

    it.each([
      ['a page', 200, 'hello'],
      ['JSON of another kind', 200, '{"hello":"world"}'],
      ['an error', 404, '{"error":"not found"}'],
    ])('says that something else listens there, which answers with %s', async (_what, status, body) => {
      other = createServer((_request, response) => response.writeHead(status).end(body))
      const address = await listen(other)
      expect(await said(`admin: { listen: '${new URL(address).host}', token: ${token} }`)).toBe(
        `does not answer at ${address}, where something else listens`,
      )
    })
  })
})

describe('peage users, where the gateway has no token', () => {
  const cwd = folder()
  let gateway: Gateway
  beforeAll(async () => {
    gateway = await startOn(cwd, `admin: { listen: '127.0.0.1:0' }`)
  })
  afterAll(() => gateway?.server.stop())

  it('says so', async () => {
    const address = String(gateway.server.adminAddress)
    writeConfiguration(cwd, { admin: `admin: { listen: '${new URL(address).host}', token: ${token} }` })
    const { exit, stderr } = await peage(cwd, ['users', 'list'])
    expect(exit).toBe(1)
    expect(stderr).toContain(
      `was started without a token for its admin listener at ${address}: stop it, or run it`,
    )
  })
})

describe('peage users, where the gateway’s own database fails', () => {
  const cwd = folder()
  let gateway: Gateway
  beforeAll(async () => {
    gateway = await startOn(cwd, `admin: { listen: '127.0.0.1:0', token: ${token} }`)
  })
  afterAll(() => gateway?.server.stop())

  it('says what the gateway answered', async () => {
    await gateway.backing.database.query('alter table users rename to gone')
    const address = String(gateway.server.adminAddress)
    writeConfiguration(cwd, { admin: `admin: { listen: '${new URL(address).host}', token: ${token} }` })
    expect(await peage(cwd, ['users', 'list'])).toEqual({
      exit: 1,
      stdout: '',
      stderr: `error: the gateway's admin listener at ${address} answered 503 (service_unavailable)\n`,
    })
  })
})
