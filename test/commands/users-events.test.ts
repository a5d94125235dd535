// Tests that `peage users` stores the same events and mails as the HTTP API.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openPostgres } from '../../src/storage/postgres/postgres.ts'
import { createPostgresDatabase, dropPostgresDatabase } from '../support/databases.ts'
import { describeWithServices } from '../support/services.ts'
import { folder, peage, writeConfiguration } from './users-setup.ts'

const events = `
upstreams: {}
mail: { smtp: 'smtp://127.0.0.1:1', from: no-reply@example.com }
events: { url: 'http://127.0.0.1:1/', secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw }`

describeWithServices('peage users', () => {
  let url: string
  const cwd = folder()
  beforeAll(async () => {
    url = await createPostgresDatabase()
    writeConfiguration(cwd, { postgres: url, routing: events })
    writeConfiguration(cwd, { postgres: url, name: 'silent.yaml' })
    await peage(cwd, ['migrate'])
  })
  afterAll(() => dropPostgresDatabase(url))

  async function users(words: string[], stdin = ''): Promise<void> {
    const { exit, stderr } = await peage(cwd, ['users', ...words], stdin)
    expect([words, exit, stderr]).toEqual([words, 0, ''])
  }

  it('stores events and mails for its changes in order, but stores no event if the configuration has no section `events`', async () => {
    const email = 'ada@example.com'
    await users(['create', email, '--password-stdin'], 'un mot de passe')
    await users(['set-plan', email, 'pro'])
    await users(['set-plan', email, 'free', '-c', 'silent.yaml'])
    await users(['deactivate', email])
    await users(['deactivate', email])
    await users(['activate', email])
    await users(['set-verified', email])
    await users(['set-verified', email, '--no'])
    await users(['set-password', email, '--password-stdin'], 'un autre mot')
    await users(['reset-usage', email])
    await users(['delete', email, '--yes'])
    const database = openPostgres({ url, maxConnections: 1, onError: () => {} })
    try {
      const rows = await database.query<{ type: string; body: string; due_at: Date | null }>(
        'select type, body, due_at from events order by id',
      )
      const data = { user_id: expect.any(Number), email, plan: 'free', is_active: 1 }
      expect(rows.map(({ body }) => JSON.parse(body))).toMatchObject([
        { type: 'user.created', data },
        { type: 'user.plan_changed', data: { ...data, plan: 'pro' } },
        { type: 'user.deactivated', data: { ...data, is_active: 0 } },
        { type: 'user.activated', data },
        { type: 'user.email_verified', data },
        { type: 'user.deleted', data },
      ])
      expect(rows.map(({ due_at }) => due_at !== null)).toEqual([true, ...Array(5).fill(false)])
      // The user was deleted, but the mails to this user are still pending.
      const mails = await database.query('select kind, address, status from mails order by id')
      expect(mails).toEqual([
        { kind: 'password_changed', address: email, status: 'pending' },
        { kind: 'account_deleted', address: email, status: 'pending' },
      ])
    } finally {
      await database.close()
    }
  })
})
