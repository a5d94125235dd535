// Reads the catalog of a database, so that a test can compare the schemas of two databases.
import type { Database } from '../../src/storage/database.ts'

/** Returns all rows of all tables in pg_catalog as text. The rows include OIDs. */
export async function catalogOf(database: Database): Promise<Record<string, string[]>> {
  const tables = await database.query<{ name: string }>(
    "select relname as name from pg_class where relkind = 'r' and relnamespace = 'pg_catalog'::regnamespace order by 1",
  )
  const catalog: Record<string, string[]> = {}
  for (const { name } of tables) {
    const rows = await database.query<{ row: string }>(`select t::text as row from pg_catalog.${name} t`)
    catalog[name] = rows.map(({ row }) => row).sort()
  }
  return catalog
}
