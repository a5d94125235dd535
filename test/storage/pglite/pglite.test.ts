// The folder of an embedded database is private, used by one process, and intact after a kill at any moment.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DataDirLocked, lockDataDir } from '../../../src/storage/pglite/data-dir-lock.ts'
import { type Compiled, compile } from '../../support/compiled.ts'
import { openEmbedded } from '../../support/open-embedded.ts'

// The tests share one folder, because the first start in a folder takes seconds.
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

  it('keeps other users and processes out of its folder', async () => {
    const database = await openEmbedded({ dir })
    for (const folder of [dir, join(dir, 'postgres')]) expect(statSync(folder).mode & 0o777).toBe(0o700)
    await expect(openEmbedded({ dir })).rejects.toBeInstanceOf(DataDirLocked)
    expect(await database.query('select * from rows')).toEqual([])
    await database.close()
  })

  it('refuses a data folder that it cannot create or use; the error contains the folder and the reason', async () => {
    const file = join(parent, 'file')
    const link = join(parent, 'link')
    const taken = join(parent, 'taken')
    writeFileSync(file, '')
    symlinkSync('/nowhere/data', link)
    mkdirSync(taken)
    writeFileSync(join(taken, 'postgres'), '')
    for (const [refused, reason] of [
      ['/proc/data', 'cannot create a folder in /proc: ENOENT'],
      ['/proc/data/below', 'cannot create a folder in /proc: ENOENT'],
      [file, `${file} is not a folder`],
      [join(file, 'data'), `${file} is not a folder`],
      [link, `${link} is not a folder`],
      [join(link, 'data'), `${link} is not a folder`],
      [taken, `${join(taken, 'postgres')} is not a folder`],
    ] as const) {
      await expect(openEmbedded({ dir: refused })).rejects.toThrow(
        `the gateway cannot write to the data folder ${refused} (${reason}). Set storage.data_dir to a writable folder`,
      )
    }
  })

  it('opens with all of its rows after a restore that left out empty folders', async () => {
    const database = await openEmbedded({ dir })
    await database.query('insert into rows values (1000)')
    await database.close()
    const root = join(dir, 'postgres')
    const isEmpty = (path: string) => statSync(path).isDirectory() && readdirSync(path).length === 0
    const emptyOnes = readdirSync(root, { recursive: true })
      .map(name => join(root, String(name)))
      .filter(isEmpty)
    expect(emptyOnes.length).toBeGreaterThan(5)
    for (const path of emptyOnes) rmdirSync(path)
    const restored = await openEmbedded({ dir })
    expect(await restored.query('delete from rows where id = 1000 returning id')).toEqual([{ id: 1000 }])
    await restored.close()
    for (const path of emptyOnes) expect(statSync(path).mode & 0o777).toBe(0o700)
  })

  it('starts again after an interrupted first start', async () => {
    const fresh = join(parent, 'fresh')
    mkdirSync(join(fresh, 'postgres.new'), { recursive: true })
    writeFileSync(join(fresh, 'postgres.new', 'PG_VERSION'), 'half')
    const database = await openEmbedded({ dir: fresh })
    expect(await database.query('select 1 as one')).toEqual([{ one: 1 }])
    await database.close()
  })

  it('releases the folder if the database in it cannot be opened', async () => {
    const broken = join(parent, 'broken')
    mkdirSync(join(broken, 'postgres'), { recursive: true })
    writeFileSync(join(broken, 'postgres', 'PG_VERSION'), 'not a version')
    await expect(openEmbedded({ dir: broken })).rejects.toMatchObject({ name: 'StorageError' })
    await (await lockDataDir(broken)).release()
  })

  it('refuses a folder of another Postgres version and leaves it unchanged', async () => {
    const version = join(dir, 'postgres', 'PG_VERSION')
    const own = readFileSync(version)
    writeFileSync(version, '17\n')
    await expect(openEmbedded({ dir })).rejects.toThrow(
      `${dir} was written by Postgres 17. This version of Péage contains Postgres ${own.toString().trim()} and cannot read it`,
    )
    expect(readdirSync(dir)).toEqual(['postgres'])
    writeFileSync(version, own)
    await (await openEmbedded({ dir })).close()
  })

  it('finishes or refuses pending statements when it is closed, and loses no confirmed row', async () => {
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

  it('has every confirmed row after kill -9, three times in a row', async () => {
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
