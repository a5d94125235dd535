// Finds or creates the account for a sign-in with another identity provider. The same transaction links the identity
// and opens the session.
import { createCoalescingQueue } from '../../async/coalescing-queue.ts'
import { Refusal, serviceUnavailable } from '../../refusals/refusal.ts'
import { type Database, isStorageError, type Queryable } from '../../storage/database.ts'
import type { ExternalPerson } from '../../users/external-person.ts'
import type { Plan, User } from '../../users/user.ts'
import { changesBetween, type RecordUserChanges, type UserChange } from '../../users/user-change.ts'
import { insertUser, lockUser, updateUser, userColumns } from '../../users/user-record-store.ts'
import { endSessions, type UserWithEpoch } from '../../users/user-store.ts'
import { noHash } from '../hashes/foreign-hash.ts'

export interface SignInRequest<Session> {
  readonly person: ExternalPerson
  /** `link` and `register` are settings of the provider. `firstPlan` is the plan of new accounts. */
  readonly rules: { readonly link: boolean; readonly register: boolean; readonly firstPlan: Plan }
  /**
   * The client's proof that an existing account belongs to the person. `checkedHash` is the hash that the correct
   * password matched. `reset` removes the password and everything else that gives access to the account.
   */
  readonly proof?: { readonly checkedHash: string } | 'reset' | undefined
  /**
   * Marks the code or ID token of the person as used. The transaction starts with this step, so only one of several
   * concurrent uses succeeds.
   * @throws Refusal if the code or ID token was already used
   */
  spend(tx: Queryable): Promise<void>
  /** Opens the session in the transaction of the sign-in. */
  open(tx: Queryable, user: UserWithEpoch): Promise<Session>
}

export interface SignInOutcome<Session> {
  readonly session: Session
  readonly isNew: boolean
  /** Whether the account changed. If so, other processes must see the change before the response is sent. */
  readonly hasChanged: boolean
}

export interface SignInStore {
  /**
   * If `signIn` throws, nothing is changed, and the code or ID token can still be used.
   * @throws AccountExists; HashReplaced; Refusal `credentials_invalid`, `provider_email_unverified`,
   *   `registration_closed`; the refusals of `spend`; StorageError
   */
  signIn<Session>(request: SignInRequest<Session>, now: Date): Promise<SignInOutcome<Session>>
}

interface Dependencies {
  database: Database
  /** Revokes the API keys of a user, and removes the webhook and the identities. */
  forgetIntegrations(tx: Queryable, user: User, now: Date): Promise<void>
  recordChanges: RecordUserChanges
}

export function createSignInStore({
  database,
  forgetIntegrations,
  recordChanges,
}: Dependencies): SignInStore {
  // Without this queue, concurrent sign-ins of one person would wait for each other in the database. Each of them would
  // occupy a connection.
  const perPerson = createCoalescingQueue<string>(isStorageError)

  async function decide<Session>(
    tx: Queryable,
    request: SignInRequest<Session>,
    now: Date,
  ): Promise<SignInOutcome<Session>> {
    const { person, rules, spend } = request
    await spend(tx)
    const known = await findIdentity(tx, person)
    if (known !== undefined) return signInKnown(tx, request, known, now)
    const { email } = person
    if (email === undefined) throw new Refusal('provider_email_unverified')
    const account = await lockByEmail(tx, email)
    if (account !== undefined) return linkAccount(tx, request, account, now)
    if (!rules.register) throw new Refusal('registration_closed')
    return createAccount(tx, request, email, now)
  }

  async function signInKnown<Session>(
    tx: Queryable,
    { person, open }: SignInRequest<Session>,
    userId: number,
    now: Date,
  ): Promise<SignInOutcome<Session>> {
    // Every change of identities locks the user before the identity, so no deadlock is possible.
    if ((await lockUser(tx, userId)) === undefined) throw new DecideAgain()
    if (!(await touchIdentity(tx, person, userId, now))) throw new DecideAgain()
    const user = await findWithEpoch(tx, userId)
    if (user.is_active === 0) throw new Refusal('credentials_invalid')
    return { session: await open(tx, user), isNew: false, hasChanged: false }
  }

  async function linkAccount<Session>(
    tx: Queryable,
    { person, rules: { link }, proof, open }: SignInRequest<Session>,
    { password_hash: hash, ...account }: LockedAccount,
    now: Date,
  ): Promise<SignInOutcome<Session>> {
    const linked = await findSubject(tx, account.id, person.issuer)
    // A concurrent sign-in of the same person linked the identity after this transaction had looked for it.
    if (linked === person.sub) throw new DecideAgain()
    if (linked !== undefined) throw new AccountExists(true)
    const isTrusted = link && account.email_verified_at !== null
    const isProven = proof === 'reset' ? link : proof?.checkedHash === hash
    if (!isTrusted && !isProven) {
      // After the password was checked, the hash was replaced, for example by a login.
      if (proof !== undefined && proof !== 'reset') throw new HashReplaced()
      throw new AccountExists(false)
    }
    if (account.is_active === 0) throw new Refusal('credentials_invalid')
    const changes: UserChange[] = []
    if (!isTrusted && proof === 'reset') {
      await tx.query('update users set password_hash = $2 where id = $1', [account.id, noHash])
      await endSessions(tx, account.id)
      await forgetIntegrations(tx, account, now)
      if (hash !== noHash) changes.push({ type: 'user.password_changed', user: account })
    }
    if (account.email_verified_at === null) await updateUser(tx, account.id, { email_verified: true })
    if (!(await insertIdentity(tx, person, account.id, now))) throw new DecideAgain()
    const user = await findWithEpoch(tx, account.id)
    changes.push(...changesBetween(account, user), { type: 'user.identity_linked', user })
    await recordChanges(tx, changes)
    return { session: await open(tx, user), isNew: false, hasChanged: true }
  }

  async function createAccount<Session>(
    tx: Queryable,
    { person, rules: { firstPlan }, open }: SignInRequest<Session>,
    email: string,
    now: Date,
  ): Promise<SignInOutcome<Session>> {
    const created = await insertUser(tx, email, noHash, { plan: firstPlan, email_verified: true })
    if (created === undefined) throw new DecideAgain()
    if (!(await insertIdentity(tx, person, created.id, now))) throw new DecideAgain()
    await recordChanges(tx, [{ type: 'user.created', user: created }])
    const session = await open(tx, await findWithEpoch(tx, created.id))
    return { session, isNew: true, hasChanged: false }
  }

  return {
    async signIn(request, now) {
      const { issuer, sub } = request.person
      return perPerson.run(JSON.stringify([issuer, sub]), async () => {
        for (let attempt = 1; attempt <= mostAttempts; attempt += 1) {
          try {
            return await database.transaction(tx => decide(tx, request, now))
          } catch (error) {
            if (!(error instanceof DecideAgain)) throw error
          }
        }
        throw serviceUnavailable()
      })
    },
  }
}

/** The refusal `account_exists`. */
export class AccountExists extends Refusal {
  /** Whether the account already has a different identity of the same issuer. If so, no proof helps. */
  readonly isFinal: boolean

  constructor(isFinal: boolean) {
    super('account_exists')
    this.isFinal = isFinal
  }
}

/**
 * Thrown if a concurrent transaction changed data that this transaction has read. This transaction is then rolled back
 * and runs again.
 */
class DecideAgain extends Error {}

/** Thrown if the password was checked against a hash that is no longer stored. Nothing is then changed. */
export class HashReplaced extends Error {}

/** The maximum number of attempts. An attempt is repeated only if another transaction succeeded in between. */
const mostAttempts = 10

/** A locked user. No other transaction can change these values until the decision is stored. */
type LockedAccount = UserWithEpoch & { readonly password_hash: string }

async function lockByEmail(tx: Queryable, email: string): Promise<LockedAccount | undefined> {
  const [account] = await tx.query<LockedAccount>(
    `select ${userColumns}, u.session_epoch, u.password_hash from users u where u.email = $1 for no key update`,
    [email],
  )
  return account
}

async function findWithEpoch(tx: Queryable, userId: number): Promise<UserWithEpoch> {
  const [user] = await tx.query<UserWithEpoch>(
    `select ${userColumns}, u.session_epoch from users u where u.id = $1`,
    [userId],
  )
  return user as UserWithEpoch
}

/** @returns the id of the user who has this identity */
async function findIdentity(
  tx: Queryable,
  { issuer, sub }: Pick<ExternalPerson, 'issuer' | 'sub'>,
): Promise<User['id'] | undefined> {
  const [identity] = await tx.query<{ user_id: number }>(
    'select user_id from identities where issuer = $1 and sub = $2',
    [issuer, sub],
  )
  return identity?.user_id
}

/** @returns the `sub` of the user's identity at this issuer */
async function findSubject(tx: Queryable, userId: number, issuer: string): Promise<string | undefined> {
  const [identity] = await tx.query<{ sub: string }>(
    'select sub from identities where user_id = $1 and issuer = $2',
    [userId, issuer],
  )
  return identity?.sub
}

/** @returns whether the identity still belongs to the user */
async function touchIdentity(
  tx: Queryable,
  { issuer, sub }: ExternalPerson,
  userId: number,
  now: Date,
): Promise<boolean> {
  const rows = await tx.query(
    `update identities set last_used_at = $4 where issuer = $1 and sub = $2 and user_id = $3 returning issuer`,
    [issuer, sub, userId, now],
  )
  return rows.length > 0
}

/** @returns false if a concurrent transaction linked this identity, or gave the user another identity of this issuer */
async function insertIdentity(
  tx: Queryable,
  { issuer, sub, email }: ExternalPerson,
  userId: number,
  now: Date,
): Promise<boolean> {
  const rows = await tx.query(
    `insert into identities (issuer, sub, user_id, email, created_at, last_used_at)
     values ($1, $2, $3, $4, $5, $5) on conflict do nothing returning issuer`,
    [issuer, sub, userId, email ?? null, now],
  )
  return rows.length > 0
}
