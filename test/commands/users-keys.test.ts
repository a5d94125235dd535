// Tests `peage users keys` and `peage users revoke-keys`, on the database and through a running gateway.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { json } from './peage.ts'
import { describeOverDoors, type Gateway, startOn } from './users-doors.ts'
import { folder, peage, writeConfiguration } from './users-setup.ts'

const iso = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

describeOverDoors('the API keys of a user in `peage users`', ({ users, inside, operator, newUser }) => {
  /** Inserts a row into `api_keys`. @param ended SQL for `revoked_at` and `expires_at` @returns the ID of the key */
  const insert = (userId: number, name: string, ended: string, scopes: string[] | null, minute = 0) =>
    inside(async database => {
      const [{ id } = { id: '' }] = await database.query<{ id: string }>(
        `insert into api_keys (user_id, token_hash, name, prefix, scopes, created_at, revoked_at, expires_at)
         values ($1, gen_random_uuid()::text, $2, 'peage_AbCdEf', $3,
                 timestamptz '2026-01-02T03:00:00Z' + $4 * interval '1 minute', ${ended}) returning id`,
        [userId, name, scopes, minute],
      )
      return id
    })
  /** Inserts a row into `api_tokens`. @returns the ID that commands print, for example `api-token-7` */
  const insertApiToken = (userId: number) =>
    inside(async database => {
      const [{ id } = { id: 0 }] = await database.query<{ id: number }>(
        'insert into api_tokens (user_id, token_hash) values ($1, gen_random_uuid()::text) returning id',
        [userId],
      )
      return `api-token-${id}`
    })
  const liveOf = (userId: number) =>
    inside(async database =>
      (
        await database.query<{ id: string }>(
          `select id::text from api_keys where user_id = $1 and revoked_at is null
           union all select 'api-token-' || id from api_tokens where user_id = $1 and revoked = 0 order by 1`,
          [userId],
        )
      ).map(({ id }) => id),
    )
  const auditOf = (userId: number) =>
    inside(database =>
      database.query(
        'select operator, channel, method, route, changes, status from admin_audit where user_id = $1 order by id',
        [userId],
      ),
    )

  it('are listed newest first with their states, and invisible characters in names are escaped', async () => {
    const { id, email } = await newUser()
    expect(await users(['keys', email])).toEqual({ exit: 0, stdout: 'no API keys\n', stderr: '' })
    expect(json(await users(['keys', email, '--json']))).toEqual({ api_keys: [] })
    await insertApiToken(id)
    const ids = [
      await insert(id, 'deploy\u202e bot', "null, '2999-01-02T00:00:00Z'", null, 0),
      await insert(id, 'CI', 'now(), null', ['data:read', 'data:write'], 1),
      await insert(id, 'old', "null, now() - interval '1 day'", [], 2),
    ].reverse()
    const day = expect.stringMatching(/^\d{4}-\d\d-\d\d$/)
    const { stdout } = await users(['keys', email.toUpperCase()])
    expect(stdout.split('\n').map(line => line.split(/ {2,}/))).toEqual([
      ['ID', 'PREFIX', 'STATE', 'CREATED', 'EXPIRES', 'LAST USED', 'NAME', 'SCOPES'],
      [ids[0], 'peage_AbCdEf', 'expired', '2026-01-02', day, '-', 'old', '-'],
      [ids[1], 'peage_AbCdEf', 'revoked', '2026-01-02', '-', '-', 'CI', 'data:read data:write'],
      [ids[2], 'peage_AbCdEf', 'live', '2026-01-02', '2999-01-02', '-', 'deploy\\u{202e} bot', '*'],
      [''],
    ])
    const { api_keys } = json(await users(['keys', String(id), '--json']))
    expect(api_keys.map((key: { id: string }) => key.id)).toEqual(ids)
    expect(api_keys[1]).toEqual({
      id: ids[1],
      name: 'CI',
      prefix: 'peage_AbCdEf',
      scopes: ['data:read', 'data:write'],
      created_at: '2026-01-02T03:01:00.000Z',
      expires_at: null,
      last_used_at: null,
      revoked_at: iso,
    })
  })

  it('are revoked one by one or all at once in api_keys and api_tokens, and each revocation is in the audit log', async () => {
    const { id, email } = await newUser()
    const [one, two] = [
      await insert(id, 'one', 'null, null', null),
      await insert(id, 'two', 'null, null', null),
    ]
    const apiToken = await insertApiToken(id)
    const label = `user ${id} (${email})`
    for (let i = 0; i < 2; i += 1)
      expect(await users(['revoke-keys', email, one])).toEqual({
        exit: 0,
        stdout: `the API key ${one} of ${label} was revoked, if it existed\n`,
        stderr: '',
      })
    expect(await liveOf(id)).toEqual([two, apiToken].sort())
    expect(json(await users(['revoke-keys', String(id), apiToken, '--json']))).toMatchObject({ id, email })
    expect(await liveOf(id)).toEqual([two])
    const again = await insertApiToken(id)
    expect(await liveOf(id)).toEqual([two, again].sort())
    expect((await users(['revoke-keys', email])).stdout).toBe(`all API keys of ${label} were revoked\n`)
    expect(await liveOf(id)).toEqual([])
    const keys = '/admin/v1/users/:id/keys'
    const entry = (route: string, changes: object) => ({
      ...{ operator, channel: 'cli', method: 'DELETE', route, changes, status: 204 },
    })
    expect(await auditOf(id)).toEqual([
      ...[one, one, apiToken].map(key => entry(`${keys}/:key`, { key })),
      entry(keys, {}),
    ])
  })

  it('are not revoked if the argument cannot be the ID of a key, and the command exits with 2', async () => {
    const { id, email } = await newUser()
    const kept = await insert(id, 'kept', 'null, null', null)
    for (const text of ['kept', kept.toUpperCase(), 'api-token-0', '../sessions']) {
      const { exit, stderr } = await users(['revoke-keys', email, text])
      expect([text, exit]).toEqual([text, 2])
      expect(stderr).toContain('It must be the ID of an API key. Run peage users keys to see the IDs.')
    }
    expect(await liveOf(id)).toEqual([kept])
    expect(await auditOf(id)).toEqual([])
  })
})

describe('`peage users keys` through a running gateway', () => {
  const cwd = folder()
  const [billing, read] = ['a-token-for-billing-0123456789', 'a-token-for-the-reader-0123456789']
  const tokens = `pay: { token: ${billing}, may: billing }, reader: { token: ${read}, may: read }`
  let gateway: Gateway
  beforeAll(async () => {
    gateway = await startOn(cwd, `admin: { listen: '127.0.0.1:0', tokens: { ${tokens} } }`)
    await gateway.backing.database.query(
      "insert into users (email, password_hash) values ('a@example.com', 'x')",
    )
  })
  afterAll(() => gateway?.server.stop())
  const writeTokens = (tokens: string) => {
    const { host } = new URL(String(gateway.server.adminAddress))
    writeConfiguration(cwd, { admin: `admin: { listen: '${host}', tokens: { ${tokens} } }` })
  }

  it('uses no token with the role "billing", because this role cannot read the keys', async () => {
    writeTokens(tokens)
    expect(await peage(cwd, ['users', 'keys', '1'])).toMatchObject({ exit: 0, stdout: 'no API keys\n' })
    writeTokens(tokens.slice(0, tokens.indexOf(', reader')))
    const { exit, stderr } = await peage(cwd, ['users', 'keys', '1'])
    expect(exit).toBe(1)
    expect(stderr).toContain('no token in gateway.yaml allows showUser')
  })
})
