// A step of `npm run build`. Prepares the data folder of an embedded database, which a gateway unpacks at its first
// start.
//
// The preparation takes seconds, so it runs only if PGlite, a migration or this file has changed.
import { createHash, randomUUID } from 'node:crypto'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants } from 'node:zlib'
import { importBuilt } from './import-built.mjs'

const { migrationFiles } = /** @type {typeof import('../src/storage/migrate.ts')} */ (
  await importBuilt('storage/migrate.js')
)
const { pgliteDigest } = /** @type {typeof import('../src/storage/pglite/wasm-module.ts')} */ (
  await importBuilt('storage/pglite/wasm-module.js')
)

/** @param {string} name */
const at = name => fileURLToPath(new URL(`../dist/${name}`, import.meta.url))
const prepared = at('storage/pglite/prepared-database')

const made = {
  pgliteDigest: pgliteDigest(),
  recipe: createHash('sha256')
    .update(readFileSync(fileURLToPath(import.meta.url)))
    .digest('hex'),
  migrations: migrationFiles(),
}
if (!isUpToDate()) {
  // The old file is removed first. If it stayed, `openFolder` would unpack it instead of creating a new database.
  rmSync(prepared, { force: true })
  const dir = mkdtempSync(join(tmpdir(), 'peage-prepare-'))
  try {
    const lastWal = await makeDatabase(dir)
    mkdirSync(dirname(prepared), { recursive: true })
    const own = `${prepared}.${randomUUID()}`
    writeFileSync(own, pack(join(dir, 'postgres'), lastWal))
    renameSync(own, prepared)
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

function isUpToDate() {
  try {
    const packed = readFileSync(prepared)
    const { folders: _, files: __, ...head } = JSON.parse(packed.toString('utf8', 0, packed.indexOf('\n')))
    return JSON.stringify(head) === JSON.stringify(made)
  } catch {
    return false
  }
}

/**
 * Creates a migrated database in a new folder.
 * @param {string} dir
 * @returns {Promise<string>} the name of the last file of the write-ahead log that Postgres may need at its next start
 */
async function makeDatabase(dir) {
  const { openFolder } = /** @type {typeof import('../src/composition/open-folder.ts')} */ (
    await importBuilt('composition/open-folder.js')
  )
  const database = await openFolder(dir)
  await database.migrate()
  // The template databases are dropped, because they are two thirds of the folder and nothing uses them.
  await database.query("update pg_database set datistemplate = false where datname like 'template_'")
  await database.query('drop database template0')
  await database.query('drop database template1')
  // The shutdown may still write to the next file of the write-ahead log. So this query returns the name of the next
  // file, not the name of the current file.
  const [row] = /** @type {{ name: string }[]} */ (
    await database.query(
      "select pg_walfile_name(pg_current_wal_lsn() + setting::bigint) as name from pg_settings where name = 'wal_segment_size'",
    )
  )
  await database.close()
  return String(row?.name)
}

/** @param {string} root @param {string} lastWal */
function pack(root, lastWal) {
  const entries = readdirSync(root, { recursive: true, withFileTypes: true })
    .map(entry => ({ path: join(entry.parentPath, entry.name).slice(root.length + 1), entry }))
    .filter(({ path }) => path !== 'postmaster.pid' && !isSpareWal(path, lastWal))
    .sort((a, b) => (a.path < b.path ? -1 : 1))
  const files = entries.filter(({ entry }) => entry.isFile()).map(({ path }) => path)
  const head = {
    ...made,
    folders: entries.filter(({ entry }) => entry.isDirectory()).map(({ path }) => path),
    files: files.map(path => ({ path, sizeBytes: statSync(join(root, path)).size })),
  }
  const content = Buffer.concat(files.map(path => readFileSync(join(root, path))))
  const params = {
    // With the maximum quality of 11, the compression would take 15 times as long. The result would be only an eighth
    // smaller.
    [constants.BROTLI_PARAM_QUALITY]: 9,
    [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
  }
  return Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), brotliCompressSync(content, { params })])
}

/**
 * Returns whether a file belongs to the write-ahead log, but Postgres does not need its content, and only reuses the
 * file.
 * @param {string} path
 * @param {string} lastWal the last file that Postgres may need
 */
function isSpareWal(path, lastWal) {
  const [, name] = /^pg_wal\/([0-9A-F]{24})$/.exec(path) ?? []
  return name !== undefined && name > lastWal
}
