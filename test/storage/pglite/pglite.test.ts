// The embedded database in a folder: private, held by one process, and intact after a kill at any moment.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DataDirLocked, lockDataDir } from '../../../src/storage/pglite/data-dir-lock.ts'
import { openEmbedded } from '../../../src/storage/pglite/pglite.ts'
import { type Compiled, compile } from '../../support/compiled.ts'

// A first start takes seconds, so the tests share one folder.
describe('the embedded database', () => {
  let parent: string
  let dir: string
  let writer: Compiled

  beforeAll(async () => {
    writer = await compile('test/storage/pglite/keep-writing.ts')
    parent = mkdtempSync(join(tmpdir(), 'peage-test-data-'))
    dir = join(parent, 'data')
    const database = await openEmbedded({ dir })
    await database.query('create table rows (id int primary key)')
    await database.close()
  })
  afterAll(async () => {
    await writer.remove()
    rmSync(parent, { recursive: true })
  })

  it('keeps its folder from everybody else, users and processes', async () => {
    const database = await openEmbedded({ dir })
    for (const folder of [dir, join(dir, 'postgres')]) expect(statSync(folder).mode & 0o777).toBe(0o700)
    await expect(openEmbedded({ dir })).rejects.toBeInstanceOf(DataDirLocked)
    expect(await database.query('select * from rows')).toEqual([])
    await database.close()
  })

  it('says of a folder that cannot be written to which it is, and what to do', async () => {
    const file = join(parent, 'file')
    writeFileSync(file, '')
    await expect(openEmbedded({ dir: join(file, 'data') })).rejects.toThrow(
      `the data folder ${join(file, 'data')} cannot be written to (ENOTDIR): give the gateway one that it may write to`,
    )
  })

  it('starts anew where a first start was cut short', async () => {
    const fresh = join(parent, 'fresh')
    mkdirSync(join(fresh, 'postgres.new'), { recursive: true })
    writeFileSync(join(fresh, 'postgres.new', 'PG_VERSION'), 'half')
    const database = await openEmbedded({ dir: fresh })
    expect(await database.query('select 1 as one')).toEqual([{ one: 1 }])
    await database.close()
  })

  it('gives the folder up where it could not be opened', async () => {
    const broken = join(parent, 'broken')
    mkdirSync(join(broken, 'postgres'), { recursive: true })
    writeFileSync(join(broken, 'postgres', 'PG_VERSION'), 'not a version')
    await expect(openEmbedded({ dir: broken })).rejects.toMatchObject({ name: 'StorageError' })
    await (await lockDataDir(broken)).release()
  })

  it('says of a folder of another Postgres whose it is, touches nothing in it, and opens one of its own', async () => {
    const version = join(dir, 'postgres', 'PG_VERSION')
    const own = readFileSync(version)
    writeFileSync(version, '17\n')
    await expect(openEmbedded({ dir })).rejects.toThrow(
      `${dir} was written by Postgres 17, and this Péage brings Postgres ${own.toString().trim()}, which cannot read it`,
    )
    expect(readdirSync(dir)).toEqual(['postgres'])
    writeFileSync(version, own)
    await (await openEmbedded({ dir })).close()
  })

  it('finishes or refuses what is in flight when it is closed, and loses nothing that it answered', async () => {
    const database = await openEmbedded({ dir })
    const writes = Array.from({ length: 50 }, (_, n) =>
      database.query('insert into rows values ($1)', [-1 - n]),
    )
    const [outcomes] = await Promise.all([Promise.allSettled(writes), database.close()])
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ name: 'StorageError' })
    }
    const again = await openEmbedded({ dir })
    const negativeRows = await again.query<{ id: number }>('select id from rows where id < 0')
    const ids = new Set(negativeRows.map(({ id }) => id))
    outcomes.forEach((outcome, n) => {
      if (outcome.status === 'fulfilled') expect(ids).toContain(-1 - n)
    })
    await again.close()
  })

  it('has every row that was answered after kill -9, three times over', async () => {
    let acknowledged = 0
    for (let round = 0; round < 3; round += 1) {
      const child = spawn(process.execPath, [writer.file, dir], { stdio: ['ignore', 'pipe', 'inherit'] })
      const before = acknowledged
      for await (const line of createInterface(child.stdout)) {
        acknowledged = Number(line)
        if (acknowledged === before + 40) {
          await sleep(5 * round)
          child.kill('SIGKILL')
        }
      }
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      expect(acknowledged).toBeGreaterThanOrEqual(before + 40)
      const database = await openEmbedded({ dir })
      const rows = await database.query('select count(*) as n from rows where id between 1 and $1', [
        acknowledged,
      ])
      expect(rows).toEqual([{ n: acknowledged }])
      await database.close()
    }
  })
})
