// Tests the change of `auth.key_secret` with `peage keys reseal`. Sessions must not end, and deliveries must not fail.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createKeyStore } from '../../src/identity/keys/key-store.ts'
import { generatePrivateJwk } from '../../src/identity/keys/signing-key.ts'
import { createSealer } from '../../src/identity/sealer.ts'
import { lockDataDir } from '../../src/storage/pglite/data-dir-lock.ts'
import { first as certificate } from '../support/certificates.ts'
import { call, login } from '../support/client.ts'
import { createPostgresDatabase, dropPostgresDatabase } from '../support/databases.ts'
import { type Program, runProgram, startProgram } from '../support/program.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { describeWithServices } from '../support/services.ts'
import { folder, lentFolder, peage, writeConfiguration } from './users-setup.ts'

const one = 'the-first-secret-long-and-random-0123'
const two = 'the-second-secret-long-and-random-456'
const token = 'a-token-for-operators-0123456789'

describe('peage keys reseal', () => {
  const cwd = folder()
  const configure = (auth: string) => writeConfiguration(cwd, { admin: `auth: { ${auth} }` })
  const open = lentFolder(cwd)
  const keys = (...words: string[]) => peage(cwd, ['keys', ...words], '', undefined, open)
  const reseal = (...words: string[]) => keys('reseal', ...words)

  it('encrypts keys that are unencrypted or encrypted with the old secret, and prints how many keys it encrypted', async () => {
    configure("key_secret: ''")
    await keys('rotate')
    configure(`key_secret: ${one}`)
    expect(await reseal()).toEqual({
      exit: 0,
      stdout:
        'signing keys: 1 re-encrypted, 0 already encrypted with auth.key_secret\n' +
        'webhook secrets: 0 re-encrypted, 0 already encrypted with auth.key_secret\n',
      stderr: '',
    })
    configure(`key_secret: ${two}, key_secret_old: ${one}`)
    const none = { resealed: 0, already: 0, unreadable: [] }
    for (const counts of [
      { resealed: 1, already: 0, unreadable: [] },
      { resealed: 0, already: 1, unreadable: [] },
    ]) {
      const { exit, stdout } = await reseal('--json')
      expect([exit, JSON.parse(stdout)]).toEqual([0, { signing_keys: counts, webhook_secrets: none }])
    }
    configure(`key_secret: ${two}`)
    expect((await keys('list')).exit).toBe(0)
    configure(`key_secret: ${one}`)
    expect((await keys('list')).exit).toBe(1)
  })

  it('exits with 1 if neither secret decrypts a key, and prints the id of the key, but no secret', async () => {
    configure(`key_secret: another-one-altogether-long-and-so-on, key_secret_old: ${one}`)
    const { exit, stdout, stderr } = await reseal()
    expect(exit).toBe(1)
    expect(stdout).toContain(
      'signing keys: 0 re-encrypted, 0 already encrypted with auth.key_secret, 1 could not be decrypted\n',
    )
    expect(stderr).toMatch(
      /^error: cannot decrypt with auth\.key_secret or auth\.key_secret_old: signing keys \S+\n$/,
    )
    expect(stdout + stderr).not.toContain('long-and-random')
  })

  it('exits with 1 if auth.key_secret is not set', async () => {
    configure("key_secret: ''")
    expect(await reseal()).toEqual({
      exit: 1,
      stdout: '',
      stderr:
        'error: auth.key_secret is not set in gateway.yaml. Set it first, because this command encrypts with it.\n',
    })
  })

  it('exits with 2 if only auth.key_secret_old is set', async () => {
    configure(`key_secret_old: ${one}`)
    const { exit, stderr } = await reseal()
    expect(exit).toBe(2)
    expect(stderr).toContain('auth.key_secret_old  ')
    expect(stderr).not.toContain(one)
  })

  it('encrypts webhook secrets even if the signing keys are in files', async () => {
    const database = await open('')
    await database.query(
      `with made as (insert into users (email, password_hash) values ('hook@example.com', 'x') returning id)
       insert into webhooks (user_id, url, receiver, secret)
       select id, 'https://example.com', 'example.com:443', 'whsec_c2VjcmV0' from made`,
    )
    await keys('generate', '--out', join(cwd, 'key.json'))
    configure(`key_secret: ${two}, keys: [key.json]`)
    const { exit, stdout } = await reseal()
    expect([exit, stdout]).toEqual([
      0,
      'signing keys: 0 re-encrypted, 1 already encrypted with auth.key_secret\n' +
        'webhook secrets: 1 re-encrypted, 0 already encrypted with auth.key_secret\n',
    ])
  })
  it('accepts an old secret that is too short for auth.key_secret', async () => {
    const { kid, text } = await generatePrivateJwk('ES256')
    const database = await open('')
    await createKeyStore(database).add(kid, (await createSealer('abc')).seal(text, kid))
    configure('key_secret: abc')
    expect((await reseal()).exit).toBe(2)
    configure(`key_secret: ${two}, key_secret_old: abc`)
    const { exit, stdout } = await reseal('--json')
    expect([exit, JSON.parse(stdout).signing_keys]).toEqual([0, { resealed: 1, already: 1, unreadable: [] }])
  })

  it('exits with 1 if another process has the embedded database open, and prints the id of that process', async () => {
    const data = join(cwd, 'data')
    const lock = await lockDataDir(data)
    const outcome = await peage(cwd, ['keys', 'reseal'])
    await lock.release()
    expect(outcome).toEqual({
      exit: 1,
      stdout: '',
      stderr: `error: the data folder ${data} is in use by process ${process.pid}. This command cannot run at the same time. Stop that process first.\n`,
    })
  })
})

describeWithServices(
  'the change of key_secret that docs/rotate-keys.md describes, with two running replicas',
  () => {
    let postgres: string
    let cwd: string
    let receiver: Receiver
    const seen: { headers: IncomingHttpHeaders; body: string }[] = []
    const running = new Set<Program>()

    beforeAll(async () => {
      postgres = await createPostgresDatabase()
      cwd = await mkdtemp(join(tmpdir(), 'peage-reseal-'))
      receiver = await startReceiver(
        certificate,
        async (request, response) => {
          const chunks: Buffer[] = []
          for await (const chunk of request) chunks.push(chunk as Buffer)
          seen.push({ headers: request.headers, body: Buffer.concat(chunks).toString() })
          response.end()
        },
        '127.0.0.1',
      )
    })
    afterAll(async () => {
      for (const { child, ended } of running) {
        child.kill('SIGTERM')
        await ended
      }
      await receiver?.close()
      await dropPostgresDatabase(postgres)
      await rm(cwd, { recursive: true, force: true })
    })

    const file = () => join(cwd, 'gateway.yaml')
    const configure = (auth: string) =>
      writeFile(
        file(),
        `server: { listen: '127.0.0.1:0', drain_timeout: 2s, log: { requests: false } }
admin: { listen: '127.0.0.1:0', token: ${token} }
storage: { postgres: '${postgres}', pool: 2 }
auth: { ${auth} }
webhooks: { allow_private_networks: true }
`,
      )
    async function start(): Promise<Program> {
      const program = await startProgram(file(), { NODE_EXTRA_CA_CERTS: certificate.files.cert })
      running.add(program)
      return program
    }
    async function restarted(program: Program): Promise<Program> {
      program.child.kill('SIGTERM')
      await program.ended
      running.delete(program)
      return start()
    }

    it('does not end any session, and every delivery is still signed with the secret of its webhook', async () => {
      const account = { email: 'reseal@example.com', password: 'correct horse battery' }
      await configure(`key_secret: ${one}`)
      let a = await start()
      let b = await start()
      const { body } = await call(a.url, 'POST', '/api/v1/auth/register', { body: account })
      await call(a.admin, 'PATCH', `/admin/v1/users/${body.user_id}`, { token, body: { plan: 'pro' } })
      let { access, refresh } = await login(a.url, account.email, account.password)
      const registered = async (): Promise<string> => {
        const url = `https://127.0.0.1:${receiver.port}/`
        const answer = await call(a.url, 'POST', '/api/v1/user/webhook', { token: access, body: { url } })
        return String(answer.body.secret)
      }
      let secret = await registered()

      /** Expects that each replica accepts the session and can sign deliveries. */
      async function expectBothWork(): Promise<void> {
        for (const { url, admin } of [a, b]) {
          expect((await call(url, 'GET', '/api/v1/subscription/upgrade', { token: access })).status).toBe(200)
          const refreshed = await call(url, 'POST', '/api/v1/auth/refresh', {
            body: { refresh_token: refresh },
          })
          expect(refreshed.status).toBe(200)
          access = String(refreshed.body.access_token)
          refresh = String(refreshed.body.refresh_token)
          seen.length = 0
          const alert = { type: 'x', user_id: body.user_id }
          expect((await call(admin, 'POST', '/admin/v1/alerts', { token, body: alert })).status).toBe(202)
          await expect.poll(() => seen.length, { timeout: 4_000 }).toBe(1)
          const { headers, body: text } = seen[0] ?? expect.unreachable()
          expect(() => new Webhook(secret).verify(text, headers as Record<string, string>)).not.toThrow()
        }
      }

      for (const auth of [
        `key_secret: ${one}, key_secret_old: ${two}`,
        `key_secret: ${two}, key_secret_old: ${one}`,
      ]) {
        await configure(auth)
        a = await restarted(a)
        // The restarted replica encrypts the secret of a new webhook. The other replica must be able to decrypt this
        // secret.
        secret = await registered()
        await expectBothWork()
        b = await restarted(b)
      }
      await expectBothWork()
      const resealed = await runProgram(['keys', 'reseal', '--json'], cwd)
      expect(resealed).toMatchObject({ code: 0, stderr: '' })
      const { signing_keys, webhook_secrets } = JSON.parse(resealed.stdout)
      expect(signing_keys).toEqual({ resealed: 1, already: 0, unreadable: [] })
      expect(webhook_secrets).toMatchObject({ unreadable: [] })
      await expectBothWork()
      await configure(`key_secret: ${two}`)
      a = await restarted(a)
      b = await restarted(b)
      await expectBothWork()
    }, 120_000)
  },
)
