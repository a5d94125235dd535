// Creates the embedded database of a gateway before the gateway starts.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { unpackPrepared } from '../../src/storage/pglite/prepared-folder.ts'
import { openEmbedded } from './open-embedded.ts'

/** @param folder the value of `storage.data_dir` of a gateway that has not started yet */
export async function makeDatabase(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  if (await unpackPrepared(join(folder, 'postgres'))) return
  // A build contains a prepared database folder. If there is no build, or if a migration has changed since the build,
  // the database is created here.
  const database = await openEmbedded({ dir: folder })
  await database.migrate()
  await database.close()
}
