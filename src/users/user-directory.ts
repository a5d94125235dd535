// Finds users for operators, page by page. Each page is one statement that uses an index.
import type { Database } from '../storage/database.ts'
import type { Plan, User } from './user.ts'
import { userColumns } from './user-record-store.ts'

export interface UserQuery {
  /** The exact email, normalized. */
  readonly email?: string | undefined
  readonly plan?: Plan | undefined
  readonly isActive?: 0 | 1 | undefined
  /**
   * The beginning of an email, normalized. If `prefix` is set, users are ordered by the bytes of their emails.
   * Otherwise, they are ordered by id.
   */
  readonly prefix?: string | undefined
  /** If `prefix` is set, the query also finds the user with this id. */
  readonly id?: number | undefined
}

export interface UserPage {
  readonly users: User[]
  readonly hasMore: boolean
}

export interface UserDirectory {
  /**
   * Returns one page of the matching users, active or inactive.
   * @param after the last email of the previous page if `prefix` is set, otherwise the last id
   */
  page(query: UserQuery, after: string | number | undefined, limit: number): Promise<UserPage>
}

/** Every method throws StorageError when the store fails. */
export function createUserDirectory(database: Database): UserDirectory {
  return {
    async page(query, after, limit) {
      const values: unknown[] = []
      const bind = (value: unknown) => `$${values.push(value)}`
      const conditions = [
        ...(query.email === undefined ? [] : [`u.email = ${bind(query.email)}`]),
        ...(query.plan === undefined ? [] : [`u.plan = ${bind(query.plan)}`]),
        ...(query.isActive === undefined ? [] : [`u.is_active = ${bind(query.isActive)}`]),
      ]
      const { prefix } = query
      if (after !== undefined) {
        const [column, type] = prefix === undefined ? ['u.id', 'bigint'] : [emailBytes, 'text']
        conditions.push(`${column} > ${bind(after)}::${type}`)
      }
      const users = await database.query<User>(
        prefix === undefined
          ? selectUsers(conditions, 'u.id', bind(limit + 1))
          : searchUsers(query, prefix, conditions, bind, limit + 1),
        values,
      )
      return { users: users.slice(0, limit), hasMore: users.length > limit }
    },
  }
}

/** The expression of the index that migration 13 created. */
const emailBytes = 'u.email collate "C"'

function selectUsers(conditions: readonly string[], order: string, limit: string): string {
  const where = conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`
  return `select ${userColumns} from users u ${where} order by ${order} limit ${limit}`
}

/**
 * Combines a lookup by email and a lookup by id, which each use an index. With a single `or` condition, Postgres would
 * scan all emails in order.
 */
function searchUsers(
  { id }: UserQuery,
  prefix: string,
  conditions: readonly string[],
  bind: (value: unknown) => string,
  limit: number,
): string {
  const end = successorOf(prefix)
  const range = [
    `${emailBytes} >= ${bind(prefix)}::text`,
    ...(end === undefined ? [] : [`${emailBytes} < ${bind(end)}::text`]),
  ]
  const bound = bind(limit)
  const byEmail = selectUsers([...conditions, ...range], emailBytes, bound)
  if (id === undefined) return byEmail
  const byId = selectUsers([...conditions, `u.id = ${bind(id)}::bigint`], 'u.id', bound)
  return `select * from ((${byEmail}) union (${byId})) u order by ${emailBytes} limit ${bound}`
}

/**
 * Returns the smallest text that is greater, by UTF-8 bytes, than all texts with the prefix; undefined if there is
 * none.
 */
function successorOf(prefix: string): string | undefined {
  const points = Array.from(prefix, character => character.codePointAt(0) ?? 0)
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    // Surrogates are not characters, so they are skipped.
    if (last < 0x10_ff_ff) return String.fromCodePoint(...points, last === 0xd7_ff ? 0xe0_00 : last + 1)
  }
  return undefined
}
