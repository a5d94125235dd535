// Stores imported users in batches. A batch is one transaction, and users that cannot be stored are left out of it.
import { type Database, type Queryable, StorageError } from '../storage/database.ts'
import type { Plan, User } from './user.ts'
import { userColumns } from './user-record-store.ts'

export interface ImportedUser {
  readonly email: string
  /** If undefined, the database assigns an id. */
  readonly id: number | undefined
  readonly passwordHash: string
  readonly plan: Plan
  readonly isEmailVerified: boolean
  readonly isActive: boolean
  /** An ISO time in UTC. If undefined, the time of the import is stored. */
  readonly createdAt: string | undefined
  readonly identities: readonly ImportedIdentity[]
}

export interface ImportedIdentity {
  readonly issuer: string
  readonly sub: string
  readonly email: string | null
}

/** `created`, or the first of these reasons that applies, in this order. */
export type ImportOutcome = 'created' | 'email_exists' | 'id_taken' | 'identity_taken'

/**
 * Decides in the given order whether each user can be created, and stores the users that can be created.
 * @returns one outcome per user
 * @throws StorageError if the store fails; no user of the call is then stored
 */
export type StoreUsers = (users: readonly ImportedUser[]) => Promise<ImportOutcome[]>

export interface UserImportStore {
  /** @param inTransaction runs in the transaction that stores the created users */
  store(
    users: readonly ImportedUser[],
    inTransaction: (tx: Queryable, created: readonly User[]) => Promise<void>,
  ): ReturnType<StoreUsers>
  /**
   * Runs `work` with a function that makes the same decisions as `store`, but stores no users. If an earlier call would
   * have stored a user, later calls treat the user as stored.
   */
  dryRun<T>(work: (store: StoreUsers) => Promise<T>): Promise<T>
}

/** The time limit of each statement. It is long, because no request waits for an import. */
const timeoutMs = 10_000

/** The maximum number of attempts. An attempt fails if another program stores one of the users after the lookup. */
const maxAttempts = 50

/** The SQLSTATEs serialization_failure and deadlock_detected. */
const serializationFailure = '40001'
const repeatable = [serializationFailure, '40P01']

export function createUserImportStore(database: Database): UserImportStore {
  const transaction = <T>(work: (tx: Queryable) => Promise<T>) => database.transaction(work, { timeoutMs })

  return {
    async store(users, inTransaction) {
      for (let attempt = 1; ; attempt += 1) {
        const taken = await transaction(async tx => {
          // All statements read the same snapshot. Otherwise, another import could store a user between two statements.
          // The email of this user would then seem new, but the id would be taken.
          await tx.query('set transaction isolation level repeatable read, read only')
          return readTaken(tx, users)
        })
        const outcomes = decide(users, taken)
        const created = users.filter((_, n) => outcomes[n] === 'created')
        if (created.length === 0) return outcomes
        try {
          const highest = Math.max(...created.map(({ id }) => id ?? 0))
          if (await isAheadOfSequence(database, highest))
            await transaction(tx => moveSequencePast(tx, highest))
          await transaction(async tx => inTransaction(tx, await insertUsers(tx, created)))
          return outcomes
        } catch (error) {
          const isRepeatable = error instanceof StorageError && repeatable.includes(error.code ?? '')
          if (!isRepeatable || attempt === maxAttempts) throw error
        }
      }
    },

    dryRun: work =>
      transaction(async tx => {
        // The keys of all users could occupy too much memory of the process. So they are stored in a temporary table,
        // which only this transaction can see.
        await tx.query('create temporary table imported_keys (key text primary key) on commit drop')
        let lastId = await lastAssignedId(tx)
        return work(async users => {
          const outcomes = decide(users, await readTaken(tx, users, 'dryRun'))
          const created = users.filter((_, n) => outcomes[n] === 'created')
          lastId = Math.max(lastId, ...created.map(({ id }) => id ?? 0))
          const keys = created.flatMap(user => {
            if (user.id === undefined) lastId += 1
            return keysOf({ ...user, id: user.id ?? lastId })
          })
          await tx.query('insert into imported_keys select unnest($1::text[]) on conflict do nothing', [keys])
          return outcomes
        })
      }),
  }
}

/** Decides about each user in order, because an earlier user in the list may have the same email, id or identity. */
function decide(users: readonly ImportedUser[], taken: Set<string>): ImportOutcome[] {
  return users.map(user => {
    if (taken.has(emailKey(user.email))) return 'email_exists'
    if (user.id !== undefined && taken.has(idKey(user.id))) return 'id_taken'
    if (user.identities.some(identity => taken.has(identityKey(identity)))) return 'identity_taken'
    for (const key of keysOf(user)) taken.add(key)
    return 'created'
  })
}

const emailKey = (email: string) => `email ${email}`
const idKey = (id: number) => `id ${id}`
const identityKey = ({ issuer, sub }: Pick<ImportedIdentity, 'issuer' | 'sub'>) =>
  `identity ${JSON.stringify([issuer, sub])}`

function keysOf({ email, id, identities }: ImportedUser): string[] {
  return [emailKey(email), ...(id === undefined ? [] : [idKey(id)]), ...identities.map(identityKey)]
}

/**
 * Returns the keys of these users that are already in the database. In a dry run, also returns the keys of these users
 * that earlier calls would have stored.
 */
async function readTaken(
  tx: Queryable,
  users: readonly ImportedUser[],
  mode?: 'dryRun',
): Promise<Set<string>> {
  const ids = users.flatMap(({ id }) => id ?? [])
  const identities = users.flatMap(user => user.identities)
  const taken = new Set<string>()
  for (const { email } of await tx.query<{ email: string }>(
    'select email from users where email = any($1::text[])',
    [users.map(({ email }) => email)],
  ))
    taken.add(emailKey(email))
  if (ids.length > 0) {
    const rows = await tx.query<{ id: number }>('select id from users where id = any($1::bigint[])', [ids])
    for (const { id } of rows) taken.add(idKey(id))
  }
  if (identities.length > 0) {
    const rows = await tx.query<{ issuer: string; sub: string }>(
      `select issuer, sub from identities
         join unnest($1::text[], $2::text[]) as wanted (issuer, sub) using (issuer, sub)`,
      [identities.map(({ issuer }) => issuer), identities.map(({ sub }) => sub)],
    )
    for (const row of rows) taken.add(identityKey(row))
  }
  if (mode === 'dryRun') {
    const rows = await tx.query<{ key: string }>(
      'select key from imported_keys where key = any($1::text[])',
      [users.flatMap(keysOf)],
    )
    for (const { key } of rows) taken.add(key)
  }
  return taken
}

/** Returns the last id that the database assigned; 0 if it assigned none. */
async function lastAssignedId(queryable: Queryable): Promise<number> {
  const [row] = await queryable.query<{ last: number }>(`select ${lastAssigned} as last from users_id_seq`)
  return row?.last ?? 0
}

const lastAssigned = 'case when is_called then last_value else last_value - 1 end'

async function isAheadOfSequence(queryable: Queryable, id: number): Promise<boolean> {
  return id > 0 && id > (await lastAssignedId(queryable))
}

/**
 * Makes the database assign only ids greater than `id` from now on. The first statement changes nothing, but it locks
 * the sequence. Without the lock, a registration could take an id between the comparison and `setval`, and the sequence
 * would go backwards.
 */
async function moveSequencePast(tx: Queryable, id: number): Promise<void> {
  await tx.query('alter sequence users_id_seq no cycle')
  await tx.query(`select setval('users_id_seq', $1::bigint) from users_id_seq where ${lastAssigned} < $1`, [
    id,
  ])
}

/**
 * Stores users, subscriptions and identities.
 * @throws StorageError with a code in `repeatable` if another program has stored a user or an identity in the meantime
 */
async function insertUsers(tx: Queryable, users: readonly ImportedUser[]): Promise<User[]> {
  const created = await tx.query<User>(insertUsersSql, [
    users.map(({ id }) => id ?? null),
    users.map(({ email }) => email),
    users.map(({ passwordHash }) => passwordHash),
    users.map(({ plan }) => plan),
    users.map(({ isActive }) => (isActive ? 1 : 0)),
    users.map(({ isEmailVerified }) => isEmailVerified),
    users.map(({ createdAt }) => createdAt ?? null),
  ])
  if (created.length < users.length) throw storedMeanwhile()
  const identities = users.flatMap(({ email: owner, identities }) =>
    identities.map(identity => ({ owner, ...identity })),
  )
  if (identities.length === 0) return created
  const stored = await tx.query(
    `insert into identities (issuer, sub, user_id, email)
     select issuer, sub, u.id, given.email
       from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as given (issuer, sub, email, owner)
       join users u on u.email = given.owner
      order by issuer collate "C", sub collate "C"
     on conflict do nothing
     returning 1 as stored`,
    [
      identities.map(({ issuer }) => issuer),
      identities.map(({ sub }) => sub),
      identities.map(({ email }) => email),
      identities.map(({ owner }) => owner),
    ],
  )
  if (stored.length < identities.length) throw storedMeanwhile()
  return created
}

function storedMeanwhile(): StorageError {
  return new StorageError('database: another program stores the same users', serializationFailure, undefined)
}

// The ids are assigned in the order of the list. The rows are inserted in the order of their emails. So two imports at
// the same time lock the emails in the same order, and do not block each other forever.
const insertUsersSql = `
  with given as materialized (
    select coalesce(id, nextval('users_id_seq')) as id, email, password_hash, plan, is_active, is_email_verified,
           created_at
      from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::smallint[], $6::boolean[], $7::text[])
           with ordinality as listed (id, email, password_hash, plan, is_active, is_email_verified, created_at, n)
     order by n
  ), created as (
    insert into users (id, email, password_hash, plan, is_active, email_verified_at, created_at)
    overriding system value
    select id, email, password_hash, plan, is_active, case when is_email_verified then now() end,
           coalesce(created_at::timestamptz, now())
      from given order by email collate "C"
    on conflict do nothing
    returning *
  ), subscribed as (
    insert into subscriptions (user_id, plan) select id, plan from created order by id
  )
  select ${userColumns} from created u order by id`
