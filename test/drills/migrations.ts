// Eight replicas start at once, first on an empty database, then on a database of an older release. All replicas become
// ready, and the schema is correct.
import { cpSync, realpathSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runMigrations } from '../../src/storage/migrate.ts'
import { temporaryFolder } from '../support/processes.ts'
import { openStage, type ReplicaStage } from './replicas.ts'
import type { Watch } from './watch.ts'

const replicas = 8
/** The number of migrations in release 0.1. */
const older = 6
const folder = realpathSync(fileURLToPath(new URL('../../migrations', import.meta.url)))

export async function migrations({ expect }: Watch): Promise<void> {
  async function startAll(stage: ReplicaStage): Promise<void> {
    const started = await Promise.all(Array.from({ length: replicas }, () => stage.start()))
    const statuses = await Promise.all(
      started.map(async ({ admin }) => (await fetch(`http://127.0.0.1:${admin}/readyz`)).status),
    )
    expect(
      `${replicas} replicas that start at once become ready`,
      statuses.every(status => status === 200),
      statuses.join(' '),
    )
  }

  const single = await schemaAfter(stage => stage.migrate())
  const empty = await schemaAfter(startAll)
  const old = await schemaAfter(async stage => {
    await migrateToOlder(stage)
    await startAll(stage)
  })
  expect('an empty database gets the same schema as from a single migration run', ...compared(single, empty))
  expect('a database of the older release gets the same schema', ...compared(single, old))
}

async function migrateToOlder(stage: ReplicaStage): Promise<void> {
  const { path, remove } = temporaryFolder()
  const isOlder = (file: string) => !(Number.parseInt(basename(file), 10) > older)
  cpSync(folder, path, { recursive: true, filter: isOlder })
  const client = await stage.database.connect()
  await runMigrations(client, () => {}, path)
  client.release()
  await remove()
}

async function schemaAfter(work: (stage: ReplicaStage) => Promise<void>): Promise<string[]> {
  const stage = await openStage()
  try {
    await work(stage)
    const { rows } = await stage.database.query<{ line: string }>(schema)
    return rows.map(({ line }) => line)
  } finally {
    await stage.stop()
  }
}

/** Lists columns, constraints, indexes, triggers and functions, one per line. */
const schema = `
  select format('column %s.%s %s %s %s', table_name, column_name, data_type, is_nullable, column_default) as line
    from information_schema.columns where table_schema = 'public'
  union all
  select format('constraint %s %s', conrelid::regclass, pg_get_constraintdef(oid))
    from pg_constraint where connamespace = 'public'::regnamespace
  union all
  select indexdef from pg_indexes where schemaname = 'public'
  union all
  select pg_get_triggerdef(oid) from pg_trigger where not tgisinternal
  union all
  select pg_get_functiondef(oid) from pg_proc where pronamespace = 'public'::regnamespace
  order by line`

/** @returns whether both schemas are equal, and the difference */
function compared(one: readonly string[], other: readonly string[]): [boolean, string] {
  const different = [
    ...other.filter(line => !one.includes(line)),
    ...one.filter(line => !other.includes(line)),
  ]
  const measured =
    different.length === 0 ? `${one.length} lines` : `${different.length} differ: ${different[0]}`
  return [one.join('\n') === other.join('\n'), measured]
}
