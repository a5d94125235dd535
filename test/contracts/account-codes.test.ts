// Tests on both databases which codes are valid, how tries are counted, and which of several simultaneous uses succeed.

import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { createCodeDerivation } from '../../src/accounts/codes/code-derivation.ts'
import {
  type AccountCode,
  type CodeIssueStore,
  createCodeIssueStore,
  insertCode,
  type NewCode,
} from '../../src/accounts/codes/code-issue-store.ts'
import { createCodeKeys } from '../../src/accounts/codes/code-key-store.ts'
import {
  type CodeRedemptionStore,
  createCodeRedemptionStore,
  spendCode,
} from '../../src/accounts/codes/code-redemption-store.ts'
import { createSealer } from '../../src/identity/sealer.ts'
import { createMailQueue } from '../../src/mail/mail-queue.ts'
import type { Database } from '../../src/storage/database.ts'
import { createUserStore, endSessions } from '../../src/users/user-store.ts'
import { describeOnBothSetups } from '../support/setups.ts'
import { addUser } from '../support/users.ts'

const minute = 60_000
let people = 0

describeOnBothSetups('account codes', ({ openDatabase: open }) => {
  let database: Database
  let issues: CodeIssueStore
  let codes: CodeRedemptionStore
  let now: Date
  let user: { id: number; email: string }

  beforeAll(async () => {
    database = await open()
    issues = createCodeIssueStore(database, createMailQueue({ now: () => now.getTime() }))
    codes = createCodeRedemptionStore({
      database,
      forgetIntegrations: async () => {},
      recordChanges: async () => {},
    })
  })
  afterAll(() => database?.close())
  beforeEach(async () => {
    now = new Date()
    people += 1
    const email = `code${people}@example.com`
    user = { id: await addUser(database, { email }), email }
  })

  const after = (ms: number) => new Date(now.getTime() + ms)
  const make = (more: Partial<NewCode> = {}) =>
    database.transaction(tx =>
      insertCode(tx, { purpose: 'reset', email: user.email, ttlMs: 30 * minute, ...more }, now),
    )
  const made = async (more: Partial<NewCode> = {}) => (await make(more)) as AccountCode
  const tryCode = () => codes.countTry({ email: user.email }, 'reset', now)
  const spend = (code: AccountCode, at = now) => database.transaction(tx => spendCode(tx, code, at))

  it('are valid for one user, email, session epoch and purpose until they expire', async () => {
    const code = await made()
    expect(code).toMatchObject({
      user_id: user.id,
      purpose: 'reset',
      email: user.email,
      session_epoch: 0,
      new_email: null,
      expires_at: after(30 * minute),
    })
    expect(await codes.findLive(code.id, now)).toEqual(code)
    expect(await codes.findLive(code.id, after(30 * minute))).toBeUndefined()
    expect(await codes.countTry({ email: user.email }, 'verify', now)).toBeUndefined()
    expect(await codes.countTry({ email: user.email }, 'reset', after(30 * minute))).toBeUndefined()
  })

  it('are not created if the user is unknown, inactive or not the expected user, or has another session epoch', async () => {
    expect(await make({ email: 'nobody@example.com' })).toBeUndefined()
    expect(await make({ userId: user.id + 1 })).toBeUndefined()
    expect(await make({ sessionEpoch: 1 })).toBeUndefined()
    expect(await make({ userId: user.id, sessionEpoch: 0 })).toBeDefined()
    await database.query('update users set is_active = 0 where id = $1', [user.id])
    expect(await make()).toBeUndefined()
  })

  it('replace the previous code of the user for the same purpose, and start without counted tries', async () => {
    const [verify, first] = [await made({ purpose: 'verify' }), await made()]
    for (let i = 0; i < 5; i += 1) await tryCode()
    const second = await made()
    expect(await codes.findLive(first.id, now)).toBeUndefined()
    expect(await spend(first)).toBeUndefined()
    expect(await codes.findLive(verify.id, now)).toEqual(verify)
    expect(await tryCode()).toEqual(second)
  })

  it.each<[string, (id: number) => Promise<unknown>]>([
    [
      'a change of the email',
      id => database.query("update users set email = email || '.net' where id = $1", [id]),
    ],
    [
      'a change of the email that was reverted',
      async id => {
        await database.query("update users set email = 'x' || email where id = $1", [id])
        await database.query('update users set email = substr(email, 2) where id = $1', [id])
      },
    ],
    ['the end of all sessions', id => database.transaction(tx => endSessions(tx, id))],
    ['a change of the password', id => createUserStore(database).setPassword(id, 'another hash')],
    [
      'a deactivation of the user',
      id => database.query('update users set is_active = 0 where id = $1', [id]),
    ],
    ['a deletion of the user', id => createUserStore(database).delete(id)],
  ])('cannot be found, tried or redeemed after %s', async (_, change) => {
    const code = await made()
    await change(user.id)
    expect(await codes.findLive(code.id, now)).toBeUndefined()
    expect(await codes.countTry({ userId: user.id }, 'reset', now)).toBeUndefined()
    expect(await tryCode()).toBeUndefined()
    expect(await spend(code)).toBeUndefined()
  })

  it('become invalid if they are for an email change and the user then requests an email that another user has', async () => {
    const taken = `taken.${user.email}`
    await createUserStore(database).create(taken, 'no hash')
    const [change, verify] = [
      await made({ purpose: 'email', newEmail: 'x@y' }),
      await made({ purpose: 'verify' }),
    ]
    const request = { user: { ...user, sessionEpoch: 0 }, newEmail: taken, notices: false, ttlMs: minute }
    expect(await issues.issueEmailChange(request, now)).toBe(true)
    expect(await codes.findLive(change.id, now)).toBeUndefined()
    expect(await codes.findLive(verify.id, now)).toEqual(verify)
  })

  it('allow exactly five of 60 simultaneous tries, and no later try', async () => {
    const code = await made()
    const tried = await Promise.all(Array.from({ length: 60 }, tryCode))
    expect(tried.filter(one => one !== undefined)).toEqual(Array(5).fill(code))
    expect(await tryCode()).toBeUndefined()
    expect(await spend(code)).toMatchObject({ id: user.id })
  })

  it('allow five wrong tries, and do not count correct tries', async () => {
    const code = await made()
    await codes.uncountTry(code.id)
    await tryCode()
    await codes.uncountTry(code.id)
    const tried = await Promise.all(Array.from({ length: 20 }, tryCode))
    expect(tried.filter(one => one !== undefined)).toHaveLength(5)
  })

  it('can be redeemed by exactly one of 60 simultaneous uses, and only this use returns the user', async () => {
    const code = await made()
    const spent = await Promise.all(Array.from({ length: 60 }, () => spend(code)))
    expect(spent.filter(one => one !== undefined)).toMatchObject([{ id: user.id, email: user.email }])
    expect(await codes.findLive(code.id, now)).toBeUndefined()
  })

  it('stay valid if the transaction that should redeem them fails', async () => {
    const code = await made()
    const failing = database.transaction(async tx => {
      await spendCode(tx, code, now)
      throw new Error('a crash')
    })
    await expect(failing).rejects.toThrow('a crash')
    expect(await spend(code, after(30 * minute))).toBeUndefined()
    expect(await spend(code)).toBeDefined()
  })

  it('cannot be redeemed after all sessions of the user were ended, even if the sessions end during a redemption', async () => {
    for (let round = 0; round < 20; round += 1) {
      const code = await made()
      const [spent] = await Promise.all([spend(code), database.transaction(tx => endSessions(tx, user.id))])
      if (spent === undefined) expect(await codes.findLive(code.id, now)).toBeUndefined()
      expect(await spend(code)).toBeUndefined()
    }
  })

  it('can be created and redeemed without a deadlock while the user is deleted', async () => {
    for (let round = 0; round < 20; round += 1) {
      const email = `dead${people}.${round}@example.com`
      const id = await addUser(database, { email })
      const code = await made({ email })
      await Promise.all([spend(code), make({ email }), createUserStore(database).delete(id)])
    }
    expect(await database.query("select from account_codes where email like 'dead%'")).toEqual([])
  })

  it('are deleted after they expire, in batches that are not larger than the limit', async () => {
    await database.query('delete from account_codes')
    await made()
    // After this `analyze`, the statistics of the table show only one row. Postgres may then run the subquery of the
    // deletion once per row. Even then, the limit must apply to the whole statement.
    await database.query('analyze account_codes')
    await made({ purpose: 'verify' })
    const kept = await made({ purpose: 'email', newEmail: 'next@example.com', ttlMs: 60 * minute })
    expect(await issues.prune(after(30 * minute), 1)).toBe(1)
    expect(await issues.prune(after(30 * minute), 10)).toBe(1)
    expect(await issues.prune(after(30 * minute), 10)).toBe(0)
    expect(await codes.findLive(kept.id, now)).toEqual(kept)
  })

  it('are derived from a key in the database, which all replicas share, if key_secret is not set', async () => {
    const code = await made()
    const replicas = Array.from({ length: 5 }, () =>
      createCodeDerivation(createCodeKeys(database, undefined)),
    )
    const [first, ...others] = await Promise.all(replicas.map(replica => replica.codeOf(code)))
    for (const other of others) expect(other).toEqual(first)
    expect(await replicas[1]?.isToken(code, String(first?.token))).toBe(true)
    expect(await database.query('select from account_code_key')).toHaveLength(1)
  })

  it('are not stored, and are derived from key_secret instead of the database key if key_secret is set', async () => {
    const code = await made()
    const stored = await createCodeDerivation(createCodeKeys(database, undefined)).codeOf(code)
    const sealer = await createSealer('a secret of sixteen')
    const sealed = createCodeDerivation(createCodeKeys(database, sealer))
    expect(await sealed.isCode(code, stored.code)).toBe(false)
    expect(await sealed.isToken(code, stored.token)).toBe(false)
    const { code: digits, token } = await sealed.codeOf(code)
    const [row] = await database.query<{ text: string }>(
      'select c::text as text from account_codes c where id = $1',
      [code.id],
    )
    expect(row?.text).not.toContain(digits)
    expect(row?.text).not.toContain(token)
  })
})
