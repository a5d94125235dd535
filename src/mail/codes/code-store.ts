// The rows that codes and tokens of mails are derived from: these statements decide which is live, tried and spent.
import { randomUUID } from 'node:crypto'
import type { Database, Queryable } from '../../storage/database.ts'
import type { User } from '../../users/user.ts'
import { userColumns } from '../../users/user-record-store.ts'

export type CodePurpose = 'reset' | 'verify' | 'email'

export interface AccountCode {
  /** A UUID. */
  readonly id: string
  readonly user_id: number
  readonly purpose: CodePurpose
  /** The user's when the code was made, as the epoch is: under any other it is void. */
  readonly email: string
  readonly session_epoch: number
  /** What the email is to become, for the purpose `email` alone. */
  readonly new_email: string | null
  readonly expires_at: Date
}

export interface NewCode {
  readonly purpose: CodePurpose
  /** The user's. */
  readonly email: string
  /** Of the user that must have this email; omitted: whoever has it. */
  readonly userId?: number
  /** The epoch that the user must be of still; omitted: any. */
  readonly sessionEpoch?: number
  readonly newEmail?: string
  readonly ttlMs: number
}

/** Whose code is tried: the user who has this email, or the one of this id. */
export type CodeOwner = { readonly email: string } | { readonly userId: number }

export interface CodeStore {
  /**
   * Stores a code in the place of the user's one before of this purpose.
   * @returns undefined if no active user is as described
   */
  make(tx: Queryable, code: NewCode, now: Date): Promise<AccountCode | undefined>
  /** Makes void what the user has of this purpose. */
  void(tx: Queryable, userId: number, purpose: CodePurpose): Promise<void>
  /**
   * Counts a try at a code; to be called before anything is compared.
   * @returns the code to compare with; undefined if there is none that is live, or it has had its five tries
   */
  countTry(owner: CodeOwner, purpose: CodePurpose, now: Date): Promise<AccountCode | undefined>
  /** Takes back one try, which was right and is no guess. */
  uncountTry(id: string): Promise<void>
  /** The code of this id, if it is live. */
  findLive(id: string, now: Date): Promise<AccountCode | undefined>
  /**
   * Spends a code: of any number of transactions, one gets its user. The user's row is locked until the end.
   * @returns the record as it is before any change; undefined if the code is not live any more
   */
  spend(tx: Queryable, code: AccountCode, now: Date): Promise<User | undefined>
  /** Deletes up to `limit` expired codes. @returns how many were deleted */
  prune(now: Date, limit: number): Promise<number>
}

/** A code is dead after so many wrong tries; its token is not (CONTRACT §12). */
const maxTries = 5

/** Every method throws StorageError when the store fails. */
export function createCodeStore(database: Database): CodeStore {
  return {
    // The user is locked first, as a deletion and `spend` do: the three cannot deadlock.
    async make(tx, { purpose, email, userId, sessionEpoch, newEmail, ttlMs }, now) {
      const [made] = await tx.query<AccountCode>(
        `with owner as (
           select id, email, session_epoch from users
            where email = $1 and is_active = 1
              and ($2::bigint is null or id = $2) and ($3::integer is null or session_epoch = $3)
              for key share
         )
         insert into account_codes as c
           (id, user_id, purpose, email, session_epoch, new_email, created_at, expires_at)
         select $4::uuid, id, $5, email, session_epoch, $6, $7::timestamptz, $8::timestamptz from owner
         on conflict (user_id, purpose) do update
            set id = excluded.id, email = excluded.email, session_epoch = excluded.session_epoch,
                new_email = excluded.new_email, tries = 0, created_at = excluded.created_at,
                expires_at = excluded.expires_at
         returning ${codeColumns}`,
        [
          email,
          userId ?? null,
          sessionEpoch ?? null,
          randomUUID(),
          purpose,
          newEmail ?? null,
          now,
          new Date(now.getTime() + ttlMs),
        ],
      )
      return made
    },

    async void(tx, userId, purpose) {
      await tx.query('delete from account_codes where user_id = $1 and purpose = $2', [userId, purpose])
    },

    async countTry(owner, purpose, now) {
      const [who, value] = 'email' in owner ? ['u.email', owner.email] : ['u.id', owner.userId]
      const [tried] = await database.query<AccountCode>(
        `update account_codes c set tries = c.tries + 1
           from users u
          where ${who} = $1 and ${isOfUser} and c.purpose = $2 and c.expires_at > $3 and c.tries < ${maxTries}
         returning ${codeColumns}`,
        [value, purpose, now],
      )
      return tried
    },

    async uncountTry(id) {
      await database.query('update account_codes set tries = tries - 1 where id = $1 and tries > 0', [id])
    },

    async findLive(id, now) {
      const [found] = await database.query<AccountCode>(
        `select ${codeColumns} from account_codes c join users u on ${isOfUser}
          where c.id = $1 and c.expires_at > $2`,
        [id, now],
      )
      return found
    },

    async spend(tx, code, now) {
      const [user] = await tx.query<User>(
        `select ${userColumns} from users u
          where u.id = $1 and u.is_active = 1 and u.email = $2 and u.session_epoch = $3 for update`,
        [code.user_id, code.email, code.session_epoch],
      )
      if (user === undefined) return undefined
      const spent = await tx.query(
        'delete from account_codes where id = $1 and expires_at > $2 returning id',
        [code.id, now],
      )
      return spent.length === 1 ? user : undefined
    },

    async prune(now, limit) {
      const rows = await database.query(
        `delete from account_codes where id in (
           select id from account_codes where expires_at <= $1 order by expires_at limit $2
              for update skip locked
         )
         returning id`,
        [now, limit],
      )
      return rows.length
    },
  }
}

/** Of an `AccountCode`, for the table alias `c`. */
const codeColumns = 'c.id, c.user_id, c.purpose, c.email, c.session_epoch, c.new_email, c.expires_at'

/** For a code `c` and its user `u`. */
const isOfUser = `u.id = c.user_id and u.is_active = 1
  and u.email = c.email and u.session_epoch = c.session_epoch`
