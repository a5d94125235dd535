// Tests `peage keys` with keys in the database: the output, and that a change is effective when the command ends.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgresDatabase } from '../support/databases.ts'
import { describeWithServices } from '../support/services.ts'
import type { Printed } from './peage.ts'
import { folder, lentFolder, peage, writeConfiguration } from './users-setup.ts'

function json({ exit, stdout }: Printed) {
  expect({ exit, stdout }).toMatchObject({ exit: 0 })
  return JSON.parse(stdout)
}

function failure({ exit, stdout, stderr }: Printed): string {
  expect({ exit, stdout }).toEqual({ exit: 1, stdout: '' })
  return stderr
}

describe('peage keys', () => {
  const cwd = folder()
  const open = lentFolder(cwd)
  const keys = (...words: string[]) => peage(cwd, ['keys', ...words], '', undefined, open)
  beforeAll(() => {
    writeConfiguration(cwd, { admin: 'auth: { key_secret: a long and random secret for tests }' })
  })

  it('performs a complete key rotation, and neither prints nor stores an unencrypted private key', async () => {
    const printed: Printed[] = []
    const said = async (...words: string[]) => {
      const outcome = await keys(...words)
      printed.push(outcome)
      return outcome
    }
    expect(await said('list')).toEqual({ exit: 0, stdout: 'no keys\n', stderr: '' })
    const first = json(await said('rotate', '--json')).kid
    const { kid: second } = json(await said('generate', '--alg', 'EdDSA', '--json'))
    expect(json(await said('list', '--json')).keys).toEqual([
      {
        kid: first,
        alg: 'ES256',
        state: 'signs',
        created_at: expect.stringMatching(/^\d{4}-.*Z$/),
        signs_from: expect.stringMatching(/^\d{4}-.*Z$/),
        signs_assertions: false,
        spent_from: null,
        kept_in: 'database',
      },
      expect.objectContaining({ kid: second, alg: 'EdDSA', state: 'verifies', signs_from: null }),
    ])
    expect((await said('rotate', second)).stdout).toBe(`key ${second} now signs\n`)
    expect(failure(await said('rotate', second))).toBe(`error: key ${second} already signs\n`)
    expect(failure(await said('retire', second))).toBe(
      `error: key ${second} is the signing key. Run peage keys rotate first, to sign with another key.\n`,
    )
    const [, replaced] = json(await said('list', '--json')).keys
    expect(replaced).toMatchObject({ kid: first, state: 'verifies' })
    expect(failure(await said('retire', first))).toBe(
      `error: tokens of key ${first} may still be valid until ${replaced.spent_from}. Retire the key after that time, or use --force to invalidate its tokens now.\n`,
    )
    expect((await said('list')).stdout).toMatch(
      new RegExp(`^KID .*\n${second}  EdDSA .* signs\n${first}  ES256 .* verifies\n$`),
    )
    expect((await said('retire', first, '--force')).stdout).toBe(
      `key ${first} is retired; its tokens are invalid\n`,
    )
    const unknown = `error: there is no key ${first}. Run peage keys list to see all keys.\n`
    expect(failure(await said('retire', first))).toBe(unknown)
    expect(failure(await said('rotate', first))).toBe(unknown)

    for (const { stdout, stderr } of printed) expect(stdout + stderr).not.toMatch(/"d"|sealed\.v1/)
    const database = await open('')
    const rows = await database.query<{ private_jwk: string }>('select private_jwk from signing_keys')
    expect(rows).toHaveLength(1)
    expect(rows[0]?.private_jwk).toMatch(/^sealed\.v1\./)
  })

  it('calculates `spent_from` from the configured token lifetimes, and prints a later time if a route uses identity assertions', async () => {
    const configure = (routing: string) =>
      writeConfiguration(cwd, {
        admin:
          'auth: { key_secret: a long and random secret for tests, access_token_ttl: 2m, refresh_token_ttl: 1m }',
        routing,
      })
    configure('upstreams: {}\nroutes: []')
    await keys('rotate')
    const [newer, older] = json(await keys('list', '--json')).keys
    expect(Date.parse(older.spent_from) - Date.parse(newer.signs_from)).toBe(125_000)
    configure(`upstreams: { app: { targets: ['http://127.0.0.1:1'] } }
routes: [{ path: /x, upstream: app, identity_assertion: true }]`)
    const [published, before] = json(await keys('list', '--json')).keys
    expect([published, before].map(key => key.signs_assertions)).toContain(true)
    expect(Date.parse(before.spent_from) - Date.parse(published.created_at)).toBe(375_000)
  })

  it('refuses `--alg` together with a key id, an unknown algorithm, and `retire` without a key id', async () => {
    expect((await keys('rotate', 'x', '--alg', 'ES256')).exit).toBe(2)
    expect((await keys('generate', '--alg', 'HS256')).exit).toBe(2)
    expect((await keys('retire')).exit).toBe(2)
  })
})

describeWithServices('peage keys rotate on Postgres', () => {
  const cwd = folder()
  let database: Awaited<ReturnType<typeof postgresDatabase>>
  beforeAll(async () => {
    database = await postgresDatabase()
    writeConfiguration(cwd, { postgres: database.url })
  })
  afterAll(() => database?.close())
  const rotate = () => peage(cwd, ['keys', 'rotate', '--json'])

  it('runs until the new key signs, which is 5 s after the key was stored', async () => {
    const first = json(await rotate()).kid
    const begun = performance.now()
    const { stdout, stderr } = await rotate()
    expect(performance.now() - begun).toBeGreaterThan(5_000)
    const { kid } = JSON.parse(stdout)
    expect(stderr).toBe(`key ${kid} will sign in 5 s\n`)
    const signing = 'select kid from signing_keys where signs_from <= now() order by signs_from'
    expect(await database.query(signing)).toEqual([{ kid: first }, { kid }])
  })
})
