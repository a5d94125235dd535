// Tests that `peage users show` and the export print the identities of a user.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { json } from './peage.ts'
import { describeOverDoors, type Gateway, startOn } from './users-doors.ts'
import { folder, peage, writeConfiguration } from './users-setup.ts'

const iso = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
const issuer = 'https://sso.example.com'

const insert = `insert into identities (issuer, sub, user_id, email, created_at, last_used_at)
  values ('${issuer}', E'a\\u202e b', $1, 'me@example.com', '2026-01-02', '2026-02-03'),
         ('https://gone.example.com', '108', $1, null, '2026-01-03', null)`

describeOverDoors('the identities of a user in the output of `peage users`', ({ users, inside, newUser }) => {
  it('are printed oldest first with invisible characters escaped, and are part of the export', async () => {
    const { id, email } = await newUser()
    await inside(database => database.query(insert, [id]))
    expect((await users(['show', email])).stdout.split('\n').slice(-3)).toEqual([
      `identity  ${issuer} a\\u{202e} b me@example.com`,
      'identity  https://gone.example.com 108',
      '',
    ])
    const stored = [
      {
        ...{ issuer, sub: 'a\u202e b', email: 'me@example.com' },
        ...{ created_at: iso, last_used_at: iso },
      },
      {
        ...{ issuer: 'https://gone.example.com', sub: '108', email: null },
        ...{ created_at: iso, last_used_at: null },
      },
    ]
    expect(json(await users(['show', String(id), '--json'])).identities).toEqual(
      stored.map(identity => ({ provider: identity.issuer, ...identity })),
    )
    expect(json(await users(['export', String(id)])).identities).toEqual(stored)
  })
})

describe('the identities of a user in `peage users show`', () => {
  const cwd = folder()
  const [billing, read] = ['a-token-for-billing-0123456789', 'a-token-for-the-reader-0123456789']
  const tokens = `pay: { token: ${billing}, may: billing }, reader: { token: ${read}, may: read }`
  const auth = `auth: { providers: { staff: { issuer: '${issuer}', client_id: a } } }`
  let gateway: Gateway
  beforeAll(async () => {
    gateway = await startOn(cwd, `${auth}\nadmin: { listen: '127.0.0.1:0', tokens: { ${tokens} } }`)
    await gateway.backing.database.query(
      "insert into users (id, email, password_hash) overriding system value values (1, 'a@example.com', '!')",
    )
    await gateway.backing.database.query(insert, [1])
  })
  afterAll(() => gateway?.server.stop())
  const writeTokens = (tokens: string) => {
    const { host } = new URL(String(gateway.server.adminAddress))
    writeConfiguration(cwd, { admin: `admin: { listen: '${host}', tokens: { ${tokens} } }` })
  }

  it('have the provider names that the running gateway uses', async () => {
    writeTokens(tokens)
    const { stdout } = await peage(cwd, ['users', 'show', '1'])
    expect(stdout).toContain('\nidentity  staff a\\u{202e} b me@example.com\n')
    const { identities } = json(await peage(cwd, ['users', 'show', '1', '--json']))
    expect(identities[0]).toMatchObject({ provider: 'staff', issuer })
  })

  it('are omitted if every token in the file has the role "billing", because this role cannot read identities', async () => {
    writeTokens(tokens.slice(0, tokens.indexOf(', reader')))
    const { exit, stdout } = await peage(cwd, ['users', 'show', '1'])
    expect([exit, stdout]).toEqual([0, expect.not.stringContaining('identity')])
    expect(json(await peage(cwd, ['users', 'show', '1', '--json']))).not.toHaveProperty('identities')
  })

  it('have the provider names from the configuration file if no gateway is running', async () => {
    const stopped = folder()
    writeConfiguration(stopped, { admin: auth })
    await peage(stopped, ['migrate'])
    await peage(stopped, ['users', 'create', 'b@example.com', '--password-stdin'], 'un mot de passe')
    const line = { email: 'c@example.com', identities: [{ issuer, sub: '7' }] }
    const file = join(stopped, 'users.jsonl')
    writeFileSync(file, `${JSON.stringify(line)}\n`)
    const imported = await peage(stopped, ['users', 'import', file])
    expect(imported).toMatchObject({ exit: 0 })
    const { stdout } = await peage(stopped, ['users', 'show', 'c@example.com'])
    expect(stdout).toContain('\nidentity  staff 7\n')
  })
})
