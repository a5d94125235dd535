// Indexes on tables that older replicas write to: built beside their work, which a migration cannot, being a transaction.
import type { MigrationLog } from './migrate.ts'

interface IndexClient {
  query(sql: string, values?: unknown[]): Promise<{ rows: unknown[] }>
}

const indexes: Readonly<Record<string, string>> = {
  // Operators search users by the beginning of an email, in the order of its bytes (CONTRACT §13).
  users_by_email_bytes: 'users (email collate "C")',
  // And list what did not arrive, which is rare: without these the whole log is read for it.
  webhook_deliveries_failed: "webhook_deliveries (id) where status = 'failed'",
  webhook_deliveries_dropped: "webhook_deliveries (id) where status = 'dropped'",
  mails_failed: "mails (id) where status = 'failed'",
}

/** Builds those that are missing, where no other process writes. */
export async function buildIndexes(client: IndexClient): Promise<void> {
  for (const [name, definition] of Object.entries(indexes))
    await client.query(`create index if not exists ${name} on ${definition}`)
}

/**
 * Builds those that are missing while others write. One that cannot be built now (a transaction elsewhere stays open
 * for longer than `waitMs`, or another replica builds it) is left to the next start: without it a search takes longer.
 * @param client on a connection of its own, outside any transaction
 * @throws whatever the client throws where the catalog cannot be read
 */
export async function buildIndexesConcurrently(
  client: IndexClient,
  log: MigrationLog = () => {},
  waitMs = 5_000,
): Promise<void> {
  for (const name of await missingOf(client, Object.keys(indexes))) {
    // Not waited for: whoever waits for a lock has a snapshot, which the one who builds would wait for.
    const { rows } = await client.query('select pg_try_advisory_lock(hashtext($1)) as is_ours', [name])
    if (!(rows as { is_ours: boolean }[])[0]?.is_ours) continue
    try {
      if ((await missingOf(client, [name])).length === 0) continue
      await client.query('set statement_timeout = 0')
      await client.query(`set lock_timeout = ${waitMs}`)
      // What a build that failed has left.
      await client.query(`drop index concurrently if exists ${name}`)
      await client.query(`create index concurrently ${name} on ${indexes[name]}`)
      log('info', `index ${name} built`)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      log('warn', `index ${name} cannot be built now, the next start tries again: ${reason}`)
    } finally {
      await client.query('reset lock_timeout')
      await client.query('reset statement_timeout')
      await client.query('select pg_advisory_unlock(hashtext($1))', [name])
    }
  }
}

/** Those that are not there by the search_path, as their tables are. A build that failed leaves one that is not valid. */
async function missingOf(client: IndexClient, names: readonly string[]): Promise<string[]> {
  const { rows } = await client.query(
    `select name from unnest($1::text[]) with ordinality as named (name, position)
      where not exists (select from pg_index where indexrelid = to_regclass(name) and indisvalid)
      order by position`,
    [names],
  )
  return (rows as { name: string }[]).map(({ name }) => name)
}
