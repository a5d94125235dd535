// Unpacks a prepared data folder at the first start. The build creates this folder and applies the migrations to it.
// Without the prepared folder, `initdb` would have to create a folder, which takes seconds.
import { readFileSync } from 'node:fs'
import { mkdir, open } from 'node:fs/promises'
import { join } from 'node:path'
import { brotliDecompressSync } from 'node:zlib'
import { type MigrationFile, migrationFiles } from '../migrate.ts'
import { pgliteDigest } from './wasm-module.ts'

/**
 * The head of the file `prepared-database`. The head is the first line, as JSON. After the head, the file contains the
 * contents of all `files`, one after another, compressed with Brotli.
 */
export interface PreparedHead {
  /** The digest of the PGlite build that wrote the folder. Another build may be unable to read the folder. */
  readonly pgliteDigest: string
  readonly migrations: readonly MigrationFile[]
  /** Parents come before their children. */
  readonly folders: readonly string[]
  readonly files: readonly { readonly path: string; readonly sizeBytes: number }[]
}

/** `npm run build` writes this file. The path is the same from `src/` and from `dist/`. */
const PREPARED = new URL('../../../dist/storage/pglite/prepared-database', import.meta.url)

/** How many files are written at the same time. */
const LANES = 16

/**
 * Creates `target` and unpacks the prepared folder into it. When the promise resolves, everything is on the disk. All
 * databases that start from the prepared folder have the same Postgres system identifier, which only replication uses.
 * They share no secret, because all tables in the prepared folder are empty, except the list of migrations.
 * @returns the names of the applied migrations; undefined if there is no prepared folder, or if this program cannot use
 *   it
 */
export async function unpackPrepared(target: string, prepared = PREPARED): Promise<string[] | undefined> {
  const packed = readIfThere(prepared)
  if (packed === undefined) return undefined
  const headEnd = packed.indexOf('\n')
  const head = JSON.parse(packed.toString('utf8', 0, headEnd)) as PreparedHead
  if (!isOurs(head)) return undefined
  const content = brotliDecompressSync(packed.subarray(headEnd + 1))
  for (const folder of ['', ...head.folders]) await mkdir(join(target, folder), { mode: 0o700 })
  let start = 0
  const files = head.files.map(({ path, sizeBytes }) => {
    const bytes = content.subarray(start, start + sizeBytes)
    start += sizeBytes
    return { path: join(target, path), bytes }
  })
  const rest = files.values()
  await Promise.all(
    Array.from({ length: LANES }, async () => {
      for (const { path, bytes } of rest) await writeToDisk(path, bytes)
    }),
  )
  return head.migrations.map(({ name }) => name)
}

/**
 * Returns whether this program can use the prepared folder. If the folder lacks newer migrations, they are applied
 * later. But if a migration has changed since the build, the changed version would never be applied.
 */
function isOurs({ pgliteDigest: digest, migrations }: PreparedHead): boolean {
  const present = migrationFiles()
  return (
    digest === pgliteDigest() &&
    migrations.every(({ name, sha256 }, n) => present[n]?.name === name && present[n].sha256 === sha256)
  )
}

async function writeToDisk(path: string, bytes: Buffer): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(bytes)
    await file.sync()
  } finally {
    await file.close()
  }
}

function readIfThere(file: URL): Buffer | undefined {
  try {
    return readFileSync(file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
