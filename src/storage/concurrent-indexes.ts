// Builds indexes on tables while older replicas write to them. A migration cannot do this, because it runs in a
// transaction.
import type { MigrationLog } from './migrate.ts'

interface IndexClient {
  query(sql: string, values?: unknown[]): Promise<{ rows: unknown[] }>
}

const indexes: Readonly<Record<string, string>> = {
  // Operators search users by the beginning of an email. This index orders emails by their bytes, so Postgres can find
  // all emails with the same beginning.
  users_by_email_bytes: 'users (email collate "C")',
  // Operators also list failed and dropped deliveries, and failed mails. These rows are rare. Without these indexes,
  // Postgres would read the whole table.
  webhook_deliveries_failed: "webhook_deliveries (id) where status = 'failed'",
  webhook_deliveries_dropped: "webhook_deliveries (id) where status = 'dropped'",
  mails_failed: "mails (id) where status = 'failed'",
}

/** Builds the missing indexes. Call this only while no other process writes. */
export async function buildIndexes(client: IndexClient): Promise<void> {
  for (const [name, definition] of Object.entries(indexes))
    await client.query(`create index if not exists ${name} on ${definition}`)
}

/**
 * Builds the missing indexes while other processes write. The build of an index can fail if a transaction stays open
 * for longer than `waitMs`, or if another replica builds the same index. After a failure, the next start tries again.
 * Until an index is built, searches are slower.
 * @param client a client on a separate connection, outside of transactions
 * @throws the client's error if the catalog cannot be read
 */
export async function buildIndexesConcurrently(
  client: IndexClient,
  log: MigrationLog = () => {},
  waitMs = 5_000,
): Promise<void> {
  for (const name of await missingOf(client, Object.keys(indexes))) {
    // Tries the lock without waiting. A waiting session would hold a snapshot, and the index build of the other session
    // would wait for that snapshot.
    const { rows } = await client.query('select pg_try_advisory_lock(hashtext($1)) as is_ours', [name])
    if (!(rows as { is_ours: boolean }[])[0]?.is_ours) continue
    try {
      if ((await missingOf(client, [name])).length === 0) continue
      await client.query('set statement_timeout = 0')
      await client.query(`set lock_timeout = ${waitMs}`)
      // Removes the invalid index that a failed build has left.
      await client.query(`drop index concurrently if exists ${name}`)
      await client.query(`create index concurrently ${name} on ${indexes[name]}`)
      log('info', `index ${name} built`)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      log('warn', `index ${name} not built; the next start tries again (${reason})`)
    } finally {
      await client.query('reset lock_timeout')
      await client.query('reset statement_timeout')
      await client.query('select pg_advisory_unlock(hashtext($1))', [name])
    }
  }
}

/**
 * Returns the names of the missing indexes. An invalid index that a failed build left also counts as missing. Postgres
 * finds index names through the search_path, like table names.
 */
async function missingOf(client: IndexClient, names: readonly string[]): Promise<string[]> {
  const { rows } = await client.query(
    `select name from unnest($1::text[]) with ordinality as named (name, position)
      where not exists (select from pg_index where indexrelid = to_regclass(name) and indisvalid)
      order by position`,
    [names],
  )
  return (rows as { name: string }[]).map(({ name }) => name)
}
