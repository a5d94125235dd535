// A database's schema as its own catalogue tells it, to compare two databases by.
import type { Database } from '../../src/storage/database.ts'

/** Every row of every table of pg_catalog, as text, with the numbers by which they name each other. */
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
