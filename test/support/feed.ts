// Opens a change feed on the database of a test. The database is either embedded or on a Postgres server.

import { type ChangeFeed, createChangeFeed } from '../../src/storage/change-feed.ts'
import type { Database } from '../../src/storage/database.ts'
import type { EmbeddedDatabase } from '../../src/storage/pglite/pglite.ts'
import { postgresListener } from '../../src/storage/postgres/postgres-listener.ts'

/** @param database the result of `Setup.openDatabase` */
export function openFeed(
  database: Database,
  onState: (state: 'trusted' | 'lost') => void = () => {},
): ChangeFeed {
  return createChangeFeed({
    listen:
      database.kind === 'embedded'
        ? (database as EmbeddedDatabase).listen
        : postgresListener((database as Database & { url: string }).url),
    database,
    now: () => performance.now(),
    onState,
  })
}
