// Tests on both databases that a code is redeemed and its change is stored in one transaction. Also tests when a new
// password is hashed.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createAccountCodes } from '../../src/accounts/codes/account-codes.ts'
import { createCodeDerivation } from '../../src/accounts/codes/code-derivation.ts'
import {
  type AccountCode,
  createCodeIssueStore,
  findLiveCode,
  insertCode,
  type NewCode,
} from '../../src/accounts/codes/code-issue-store.ts'
import { createCodeKeys } from '../../src/accounts/codes/code-key-store.ts'
import {
  type CodeRedemptionStore,
  createCodeRedemptionStore,
} from '../../src/accounts/codes/code-redemption-store.ts'
import { createRedeemCode } from '../../src/accounts/codes/redeem-code.ts'
import { createPasswords, type Passwords } from '../../src/accounts/password.ts'
import { newPasswordValidator } from '../../src/accounts/password-rules.ts'
import { createSessionStore } from '../../src/accounts/session-store.ts'
import { createMailQueue } from '../../src/mail/mail-queue.ts'
import { serviceUnavailable } from '../../src/refusals/refusal.ts'
import type { Database } from '../../src/storage/database.ts'
import { createRateLimiter } from '../../src/storage/rate-limiter.ts'
import type { UserChange } from '../../src/users/user-change.ts'
import { signIn, storedToken } from '../support/sessions.ts'
import { describeOnBothSetups } from '../support/setups.ts'
import { addUser } from '../support/users.ts'

const clock = { now: () => Date.now() }
let people = 0

describeOnBothSetups('the redemption of a code', ({ openDatabase: open }) => {
  let database: Database
  let changes: CodeRedemptionStore
  let user: { id: number; email: string }
  /** All changes that were recorded, even if their transaction failed later. */
  let recorded: UserChange[]
  let forgotten: number[]
  let failure: Error | undefined

  beforeAll(async () => {
    database = await open()
    changes = createCodeRedemptionStore({
      database,
      async forgetIntegrations(_tx, { id }) {
        forgotten.push(id)
      },
      async recordChanges(_tx, all) {
        recorded.push(...all)
        if (failure !== undefined) throw failure
      },
    })
  })
  afterAll(() => database?.close())
  beforeEach(async () => {
    recorded = []
    forgotten = []
    failure = undefined
    user = await newUser()
  })

  async function newUser() {
    people += 1
    const email = `spent${people}@example.com`
    return { id: await addUser(database, { email }), email }
  }
  const make = async (more: Partial<NewCode> = {}) =>
    (await database.transaction(tx =>
      insertCode(tx, { purpose: 'reset', email: user.email, ttlMs: 60_000, ...more }, new Date()),
    )) as AccountCode
  const record = async () =>
    (
      await database.query<{ email: string; password_hash: string; verified: boolean; epoch: number }>(
        `select email, password_hash, email_verified_at is not null as verified, session_epoch as epoch
           from users where id = $1`,
        [user.id],
      )
    )[0]
  const verify = () => database.query('update users set email_verified_at = now() where id = $1', [user.id])
  const types = () => recorded.map(({ type }) => type)

  it('records the new password of a password reset, and an email verification if the email was not verified before', async () => {
    const changed = await changes.resetPassword(await make(), 'another hash', new Date())
    expect(await record()).toEqual({
      email: user.email,
      password_hash: 'another hash',
      verified: true,
      epoch: 1,
    })
    expect(types()).toEqual(['user.password_changed', 'user.email_verified'])
    expect(recorded.map(one => one.user)).toEqual([changed, changed])
    expect(forgotten).toEqual([user.id])
    await changes.resetPassword(await make(), 'a third hash', new Date())
    expect(types().slice(2)).toEqual(['user.password_changed'])
    expect(forgotten).toEqual([user.id])
  })

  it('records an email verification only if the email was not verified before', async () => {
    await changes.verifyEmail(await make({ purpose: 'verify' }), new Date())
    expect(types()).toEqual(['user.email_verified'])
    await changes.verifyEmail(await make({ purpose: 'verify' }), new Date())
    expect(recorded).toHaveLength(1)
    expect(await record()).toMatchObject({ verified: true, epoch: 0 })
  })

  it('records an email change as one change that contains the previous email', async () => {
    const newEmail = `next.${user.email}`
    await verify()
    const changed = await changes.changeEmail(await make({ purpose: 'email', newEmail }), 'none', new Date())
    expect(recorded).toEqual([{ type: 'user.email_changed', user: changed, previousEmail: user.email }])
    expect(await record()).toMatchObject({ email: newEmail, verified: true, epoch: 1 })
  })

  it('ends all sessions at an email change, except the session that confirmed the change', async () => {
    const sessions = createSessionStore(database)
    const tokens = [1, 2, 3].map(n => storedToken(`${user.email} ${n}`, new Date(Date.now() + 60_000)))
    for (const token of tokens) await sessions.create(user.id, 0, token, signIn())
    const [current] = tokens as [ReturnType<typeof storedToken>]
    const code = await make({ purpose: 'email', newEmail: `next.${user.email}` })
    await changes.changeEmail(code, { id: current.sessionId }, new Date())
    expect((await sessions.list(user.id, new Date())).map(({ id }) => id)).toEqual([current.sessionId])
  })

  it('changes nothing if another user already has the new email, and the code stays valid', async () => {
    const other = await newUser()
    const code = await make({ purpose: 'email', newEmail: other.email })
    expect(await changes.changeEmail(code, 'none', new Date())).toBe('email_taken')
    expect(await record()).toMatchObject({ email: user.email, verified: false, epoch: 0 })
    expect(await findLiveCode(database, code.id, new Date())).toEqual(code)
    expect(recorded).toEqual([])
  })

  it.each(['reset', 'verify', 'email'] as const)(
    'changes nothing for the purpose %s if the last step fails',
    async purpose => {
      failure = new Error('a crash')
      const code = await make({ purpose, ...(purpose === 'email' ? { newEmail: `x.${user.email}` } : {}) })
      const now = new Date()
      const spending = {
        reset: () => changes.resetPassword(code, 'another hash', now),
        verify: () => changes.verifyEmail(code, now),
        email: () => changes.changeEmail(code, 'none', now),
      }[purpose]
      await expect(spending()).rejects.toThrow('a crash')
      expect(await record()).toEqual({
        email: user.email,
        password_hash: 'no hash',
        verified: false,
        epoch: 0,
      })
      failure = undefined
      expect(await spending()).toMatchObject({ id: user.id })
      expect(await spending()).toBeUndefined()
    },
  )

  describe('a new password', () => {
    let hashed: string[]
    let passwords: Passwords
    let isQueueFull = false

    beforeAll(async () => {
      passwords = createPasswords({ concurrency: 1, queue: 64, wait: 5_000 })
    })
    beforeEach(() => {
      hashed = []
    })

    const derivation = () => createCodeDerivation(createCodeKeys(database, undefined))
    const service = () =>
      createAccountCodes({
        issues: createCodeIssueStore(database, createMailQueue(clock)),
        redemptions: changes,
        redeemCode: createRedeemCode({ codes: changes, derivation: derivation(), clock }),
        validateNewPassword: newPasswordValidator('refuse'),
        passwords: {
          async hash(password) {
            if (isQueueFull) throw serviceUnavailable()
            hashed.push(password)
            return passwords.hash(password)
          },
        },
        limiters: {
          perEmail: createRateLimiter('mail_email', null, { clock }),
          perAddress: createRateLimiter('mail_address', null, { clock }),
        },
        mails: createMailQueue(clock),
        clock,
        ttlMs: { reset: 60_000, verify: 60_000, email: 60_000 },
        notices: true,
        changesVisible: async () => {},
      }).passwordReset
    const mailed = async () => {
      const row = await make()
      return { row, owner: { email: user.email }, ...(await derivation().codeOf(row)) }
    }

    it('is hashed only if the code is correct, and only once if many requests use one token simultaneously', async () => {
      const { code, token, owner } = await mailed()
      const reset = service()
      const wrong = code === '00000000' ? '00000001' : '00000000'
      for (const presented of [{ token: 'x' }, { code: wrong, owner }, { code, owner: { email: 'x@y' } }])
        await expect(reset.reset(presented, 'a new password')).rejects.toThrow('code_invalid')
      expect(hashed).toEqual([])
      const uses = await Promise.allSettled(
        Array.from({ length: 50 }, (_, i) => reset.reset({ token }, `password ${i}`)),
      )
      expect(uses.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
      expect(hashed).toHaveLength(1)
    })

    it('is refused if it is too common, but a simultaneous use of the same token with another password succeeds', async () => {
      const { token } = await mailed()
      const reset = service()
      const [first, ...others] = await Promise.allSettled([
        reset.reset({ token }, user.email),
        reset.reset({ token }, user.email),
        reset.reset({ token }, 'quite another one'),
      ])
      expect(String((first as PromiseRejectedResult).reason)).toContain('password_too_common')
      expect(others.map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
      expect(hashed).toEqual(['quite another one'])
    })

    it('does not count as a try if it cannot be hashed, and the code and the token stay valid', async () => {
      const { code, token, owner } = await mailed()
      const reset = service()
      isQueueFull = true
      for (const presented of [...Array(6).fill({ code, owner }), { token }])
        await expect(reset.reset(presented, 'a new password')).rejects.toThrow('service_unavailable')
      isQueueFull = false
      expect(await reset.reset({ code, owner }, 'a new password')).toBe(user.id)
    })
  })
})
