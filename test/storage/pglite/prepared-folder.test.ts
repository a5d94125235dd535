// The build prepares a data folder that equals the result of `initdb` and the migrations. The gateway unpacks it
// completely or not at all, and only if PGlite and the migrations are the same as in the build.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type MigrationFile, migrationFiles } from '../../../src/storage/migrate.ts'
import { type PreparedHead, unpackPrepared } from '../../../src/storage/pglite/prepared-folder.ts'
import { catalogOf } from '../../support/catalog.ts'
import { openEmbedded } from '../../support/open-embedded.ts'

const PREPARED = new URL('../../../dist/storage/pglite/prepared-database', import.meta.url)

/** A program that opens a new data folder with the compiled storage module, like a first start. */
const OPEN = `
  import { openFolder } from '${new URL('../../../build/composition/open-folder.js', import.meta.url)}'
  await openFolder(process.argv[1])
`

const NAMES = migrationFiles().map(({ name }) => name)
const FAST = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }

describe('the prepared data folder', () => {
  let parent: string
  let original: { head: PreparedHead; content: Buffer }

  beforeAll(() => {
    parent = mkdtempSync(join(tmpdir(), 'peage-test-prepared-'))
    const packed = readFileSync(PREPARED)
    const headEnd = packed.indexOf('\n')
    original = {
      head: JSON.parse(packed.toString('utf8', 0, headEnd)) as PreparedHead,
      content: brotliDecompressSync(packed.subarray(headEnd + 1)),
    }
  })
  afterAll(() => rmSync(parent, { recursive: true }))

  function packedWith(changed: Partial<PreparedHead>, content = original.content): URL {
    const file = join(mkdtempSync(join(parent, 'packed-')), 'prepared')
    const head = `${JSON.stringify({ ...original.head, ...changed })}\n`
    writeFileSync(file, Buffer.concat([Buffer.from(head), brotliCompressSync(content, FAST)]))
    return pathToFileURL(file)
  }

  it('has the same catalog as a folder that initdb and all migrations have created', async () => {
    const dir = join(parent, 'prepared')
    const prepared = await openEmbedded({ dir })
    expect(await prepared.migrate()).toEqual(NAMES)
    expect(await prepared.migrate()).toEqual([])
    const made = await openEmbedded()
    await made.migrate()
    const [expected, seen] = [await catalogOf(made), await catalogOf(prepared)]
    // The build drops the template databases, so their rows are not expected.
    for (const table of ['pg_database', 'pg_shdescription']) {
      expected[table] = expected[table]?.filter(row => !/^\([14],/.test(row)) ?? []
    }
    await Promise.all([prepared.close(), made.close()])
    expect(Object.keys(expected).length).toBeGreaterThan(20)
    for (const [table, rows] of Object.entries(expected))
      expect({ table, rows: seen[table] }).toEqual({ table, rows })
  })

  it('has no rows except the names of its migrations, so that installations share no secret', async () => {
    const database = await openEmbedded({ dir: join(parent, 'prepared') })
    const tables = await database.query<{ name: string }>(
      "select table_name as name from information_schema.tables where table_schema = 'public'",
    )
    expect(tables.length).toBeGreaterThan(5)
    for (const { name } of tables) {
      const [row] = await database.query<{ n: number }>(`select count(*) as n from ${name}`)
      expect({ name, rows: row?.n }).toEqual({
        name,
        rows: name === 'peage_migrations' ? migrationFiles().length : 0,
      })
    }
    await database.close()
  })

  it('is readable only by its owner', async () => {
    const target = join(parent, 'private')
    await unpackPrepared(target)
    for (const entry of ['.', ...readdirSync(target, { recursive: true, encoding: 'utf8' })]) {
      expect(statSync(join(target, entry)).mode & 0o077).toBe(0)
    }
  })

  it('is not used by another version of PGlite', async () => {
    const target = join(parent, 'other-pglite')
    expect(await unpackPrepared(target, packedWith({ pgliteDigest: '0'.repeat(64) }))).toBeUndefined()
    expect(existsSync(target)).toBe(false)
  })

  it('is not used if one of its migrations was changed, deleted or moved', async () => {
    const [first, second, ...others] = original.head.migrations as [
      MigrationFile,
      MigrationFile,
      ...MigrationFile[],
    ]
    const changed = { name: first.name, sha256: '0'.repeat(64) }
    const unknown = { name: '99_unknown', sha256: '0'.repeat(64) }
    for (const migrations of [
      [changed, second, ...others],
      [second, first, ...others],
      [first, second, ...others, unknown],
    ]) {
      expect(await unpackPrepared(join(parent, 'other'), packedWith({ migrations }))).toBeUndefined()
    }
    const earlier = { migrations: [first, second] }
    expect(await unpackPrepared(join(parent, 'earlier'), packedWith(earlier))).toEqual([
      first.name,
      second.name,
    ])
  })

  it('causes an error if its file is truncated, and leaves no database behind', async () => {
    const packed = readFileSync(PREPARED)
    const cut = join(parent, 'cut')
    writeFileSync(cut, packed.subarray(0, packed.length - 1_000))
    await expect(unpackPrepared(join(parent, 'from-cut'), pathToFileURL(cut))).rejects.toThrow()
    expect(existsSync(join(parent, 'from-cut'))).toBe(false)
  })

  it('is complete or absent after kill -9 during unpacking; if it is absent, the next start unpacks it again', async () => {
    let cutShort = 0
    for (let round = 0; cutShort < 3 && round < 30; round += 1) {
      const dir = join(parent, `killed-${round}`)
      const child = spawn(process.execPath, ['--input-type=module', '-e', OPEN, dir], { stdio: 'ignore' })
      const ended = once(child, 'exit')
      while (child.exitCode === null && !existsSync(join(dir, 'postgres.new/global/pg_control')))
        await sleep(1)
      child.kill('SIGKILL')
      await ended
      if (existsSync(join(dir, 'postgres'))) continue
      cutShort += 1
      const database = await openEmbedded({ dir })
      expect(await database.migrate()).toEqual(NAMES)
      await database.close()
      expect(readdirSync(dir)).toEqual(['postgres'])
    }
    expect(cutShort).toBe(3)
  })
})
