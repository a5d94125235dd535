// Inserts users into a database, for tests that do not register users.
import type { Queryable } from '../../src/storage/database.ts'

interface Columns {
  email: string
  plan: string
  is_active: 0 | 1
  daily_usage: number
  last_usage_date: string | null
}

let made = 0

/** Inserts a user. By default, the user is active, with the plan `free` and a new email. @returns the ID */
export async function addUser(database: Queryable, columns: Partial<Columns> = {}): Promise<number> {
  made += 1
  const { email, plan, is_active, daily_usage, last_usage_date }: Columns = {
    ...{ email: `someone${made}@example.com`, plan: 'free', is_active: 1 },
    ...{ daily_usage: 0, last_usage_date: null },
    ...columns,
  }
  const [row] = await database.query<{ id: number }>(
    `insert into users (email, password_hash, plan, is_active, daily_usage, last_usage_date)
     values ($1, 'no hash', $2, $3, $4, $5) returning id`,
    [email, plan, is_active, daily_usage, last_usage_date],
  )
  if (row === undefined) throw new Error('no user was inserted')
  return row.id
}
