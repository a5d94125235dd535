// A data folder for every program of a test: copied, since to make and migrate one takes seconds.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { openEmbedded } from '../../src/storage/pglite/pglite.ts'

const migrations = fileURLToPath(new URL('../../migrations', import.meta.url))
const pglite = join(dirname(createRequire(import.meta.url).resolve('@electric-sql/pglite')), '..')
const cache = join(pglite, '../../.cache/peage-test')

/** @param folder `storage.data_dir` of a gateway that has not been started yet */
export async function makeDatabase(folder: string): Promise<void> {
  const original = join(cache, `embedded-${version()}`)
  if (!existsSync(original)) await makeOriginal(original)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  // Copying its thousand files in this process would take some five times the CPU.
  await promisify(execFile)('cp', ['-R', `${original}/.`, folder])
}

/** Of all that an original depends on: another one is made when that changes. */
function version(): string {
  const hash = createHash('sha256').update(readFileSync(join(pglite, 'package.json')))
  for (const name of readdirSync(migrations).sort()) {
    hash.update(name).update(readFileSync(join(migrations, name)))
  }
  return hash.digest('hex').slice(0, 16)
}

async function makeOriginal(original: string): Promise<void> {
  await mkdir(cache, { recursive: true })
  const aside = await mkdtemp(join(cache, 'embedded-new-'))
  const database = await openEmbedded({ dir: aside })
  await database.migrate()
  await database.close()
  try {
    await rename(aside, original)
  } catch (error) {
    // Another worker was faster.
    await rm(aside, { recursive: true })
    if (!existsSync(original)) throw error
  }
}
