// Tests `peage users` with invalid command lines, and with a database that is missing, down or not migrated.
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createPostgresDatabase, dropPostgresDatabase } from '../support/databases.ts'
import { describeWithServices } from '../support/services.ts'
import { json, runIn } from './peage.ts'
import { folder, peage, writeConfiguration } from './users-setup.ts'

const password = 'un mot de passe'

describe('peage users', () => {
  const cwd = folder()

  it.each([
    [['users'], 'Usage: peage users'],
    [['users', 'lst'], 'Did you mean list?'],
    [['users', 'list', '--plan', 'Gold'], 'The name of a plan has at most 32 lower-case letters'],
    [['users', 'list', '--email', 'nobody'], 'It must be an email'],
    [['users', 'show'], "missing required argument 'user'"],
    [['users', 'show', 'ada'], 'It must be an ID such as 42, or an email.'],
    [['users', 'show', '9007199254740993'], 'It must be an ID such as 42, or an email.'],
    [['users', 'set-plan', '1', 'gold'], 'Allowed choices are free, premium, pro.'],
    [['users', 'create', 'ada'], 'It must be an email'],
    [['users', 'create', 'a@example.com', 'secret-secret'], 'too many arguments'],
    [['users', 'create', 'a@example.com', '--password', 'secret'], 'unknown option'],
    [['users', 'create', 'a@example.com'], 'use --password-stdin'],
    [['users', 'set-password', '1'], 'use --password-stdin'],
    [['users', 'list', '-c', 'nowhere.yaml'], 'nowhere.yaml:1:1  (file)  '],
  ])(
    'refuses %j with a message on standard error and exit code 2, and opens no database',
    async (words, sentence) => {
      expect(await peage(cwd, words)).toEqual({
        exit: 2,
        stdout: '',
        stderr: expect.stringContaining(sentence),
      })
      expect(existsSync(join(cwd, 'data'))).toBe(false)
    },
  )

  it('reports that a migration is needed, and creates nothing, if there is no data folder', async () => {
    const missing = await peage(cwd, ['users', 'list'])
    const sentence = `error: there is no database in ${join(cwd, 'data')} yet. Run peage migrate -c gateway.yaml first.\n`
    expect(missing).toEqual({ exit: 1, stdout: '', stderr: sentence })
    expect(readdirSync(cwd)).toEqual(['gateway.yaml'])
  })

  describe('with a migrated data folder', () => {
    beforeAll(async () => expect(await peage(cwd, ['migrate'])).toMatchObject({ exit: 0 }))

    it('stores a change, and the next command shows it', async () => {
      const create = ['users', 'create', 'stays@example.com', '--password-stdin', '--json']
      const created = json(await peage(cwd, create, password))
      expect(json(await peage(cwd, ['users', 'list', '--json']))).toEqual({ users: [created] })
      expect((await peage(cwd, ['explain', 'GET', '/one', '--user', String(created.id)])).stdout).toContain(
        `, as free, user ${created.id}, email not verified\n`,
      )
      expect(await peage(cwd, ['keys', 'list'])).toEqual({ exit: 0, stdout: 'no keys\n', stderr: '' })
    })

    it('`list` exits with 0 if the reader closes the pipe, and with 1 after any other write error', async () => {
      for (const [code, expected] of [
        ['EPIPE', 0],
        ['ENOSPC', 1],
      ] as const) {
        const stdout = new Writable({
          write: (_c, _e, done) => done(Object.assign(new Error(code), { code })),
        })
        expect(await runIn(cwd, ['users', 'list'], { stdout })).toMatchObject({
          exit: expected,
          stderr: expected === 0 ? '' : `error: ${code}\n`,
        })
      }
    })
  })

  it('reports what the operator must check if the database is down', async () => {
    writeConfiguration(cwd, { name: 'away.yaml', postgres: 'postgres://x:s3cret@127.0.0.1:1/x' })
    const { exit, stdout, stderr } = await peage(cwd, ['users', 'list', '-c', 'away.yaml'])
    expect({ exit, stdout }).toEqual({ exit: 1, stdout: '' })
    expect(stderr).toMatch(
      /^error: the database \S+ failed \(.*ECONNREFUSED.*\)\. Check that the server is running, and that storage\.postgres in away\.yaml is correct\.\n$/,
    )
    expect(stderr).not.toContain('s3cret')
  })
})

describeWithServices('peage users on a Postgres without tables', () => {
  const cwd = folder()
  let url = ''
  afterAll(() => dropPostgresDatabase(url))

  it('reports that a migration is needed, but does not migrate the database', async () => {
    url = await createPostgresDatabase()
    writeConfiguration(cwd, { postgres: url })
    for (let i = 0; i < 2; i += 1) {
      expect(await peage(cwd, ['users', 'list', '--json'])).toEqual({
        exit: 1,
        stdout: '',
        stderr:
          'error: the database is not migrated to this version. Run peage migrate -c gateway.yaml first.\n',
      })
    }
  })
})
