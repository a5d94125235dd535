// A data folder that the build has made and migrated: unpacked at a first start, which `initdb` would take seconds for.
import { readFileSync } from 'node:fs'
import { mkdir, open } from 'node:fs/promises'
import { join } from 'node:path'
import { brotliDecompressSync } from 'node:zlib'
import { type MigrationFile, migrationFiles } from '../migrate.ts'
import { pgliteDigest } from './wasm-module.ts'

/** The first line, as JSON. What follows is the content of all files, one after the other, compressed by Brotli. */
export interface PreparedHead {
  /** Of the PGlite that wrote the folder: another one may not read it. */
  readonly pgliteDigest: string
  /** Those that are applied. */
  readonly migrations: readonly MigrationFile[]
  /** Parents come before what is in them. */
  readonly folders: readonly string[]
  readonly files: readonly { readonly path: string; readonly sizeBytes: number }[]
}

/** `npm run build` writes it. The path is the same from `src/` and from `dist/`. */
const PREPARED = new URL('../../../dist/storage/pglite/prepared-database', import.meta.url)

/** How many files are written at a time. */
const LANES = 16

/**
 * Unpacks the prepared folder into `target`, which is created, and has it all on the disk when it resolves. Two
 * databases that come of it share Postgres' system identifier, which only replication looks at, and no secret: every
 * table but the list of migrations is empty.
 * @returns the names of the migrations that are applied in it; undefined if there is none, or if it was made by another
 * PGlite or from other migrations than these
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

/** Newer migrations than the folder has are applied to it later; one that has changed since would be missed. */
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
