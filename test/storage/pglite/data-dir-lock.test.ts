// Only one process at a time uses a data folder, even if the previous process was killed.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { DataDirLocked, lockDataDir } from '../../../src/storage/pglite/data-dir-lock.ts'
import { type Compiled, compile } from '../../support/compiled.ts'

interface Holder {
  process: ChildProcessWithoutNullStreams
  line(): Promise<string>
  kill(): Promise<void>
}

describe('the lock of a data folder', () => {
  let program: Compiled
  let dir: string
  let holders: Holder[]

  beforeAll(async () => {
    program = await compile('test/storage/pglite/hold-data-dir.ts')
  })
  afterAll(() => program.remove())
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'peage-test-folder-'))
    holders = []
  })
  afterEach(async () => {
    await Promise.all(holders.map(holder => holder.kill()))
    rmSync(dir, { recursive: true })
  })

  function start(when = ''): Holder {
    const child = spawn(process.execPath, [program.file, dir, when])
    child.stderr.on('data', text => process.stderr.write(text))
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
    const holder = {
      process: child,
      line: async () => (await lines.next()).value ?? 'ended',
      async kill() {
        if (child.exitCode !== null || child.signalCode !== null) return
        child.kill('SIGKILL')
        await once(child, 'exit')
      },
    }
    holders.push(holder)
    return holder
  }
  const lockFile = () => join(dir, 'peage.lock')

  it('refuses a second process, and the error names the first process and the remedy', async () => {
    const holder = start()
    expect(await holder.line()).toBe('held')
    const pid = holder.process.pid
    const second = JSON.parse(await start().line())
    expect(second).toEqual({
      pid,
      message: `the data folder ${dir} is in use by another Péage (process ${pid}). Stop that process first, or set another storage.data_dir.`,
    })
    await expect(lockDataDir(dir)).rejects.toBeInstanceOf(DataDirLocked)
  })

  it('refuses a second lock by the same process until the first is released', async () => {
    const lock = await lockDataDir(dir)
    await expect(lockDataDir(dir)).rejects.toMatchObject({ name: 'DataDirLocked', pid: process.pid })
    await lock.release()
    const next = await lockDataDir(dir)
    // A second release of the first lock must not release the next lock.
    await lock.release()
    await expect(lockDataDir(dir)).rejects.toBeInstanceOf(DataDirLocked)
    await next.release()
    expect(readdirSync(dir)).toEqual([])
  })

  it('cannot be acquired if the lock file is a broken link; the attempt ends with an error', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'peage-lock-'))
    symlinkSync('/nowhere/lock', join(dir, 'peage.lock'))
    await expect(lockDataDir(dir)).rejects.toMatchObject({ code: 'EEXIST' })
    rmSync(dir, { recursive: true })
  })

  it('is taken over from a process that was killed', async () => {
    const holder = start()
    expect(await holder.line()).toBe('held')
    await holder.kill()
    expect(await start().line()).toBe('held')
    expect(readdirSync(dir)).toEqual(['peage.lock'])
  })

  it('is taken over if its process ID now belongs to another process', async () => {
    const holder = start()
    expect(await holder.line()).toBe('held')
    const owner = JSON.parse(readFileSync(lockFile(), 'utf8'))
    await holder.kill()
    writeFileSync(lockFile(), JSON.stringify({ ...owner, pid: process.pid }))
    await (await lockDataDir(dir)).release()
  })

  it('is respected if its file contains only the ID of a running process', async () => {
    writeFileSync(lockFile(), JSON.stringify({ pid: process.pid }))
    await expect(lockDataDir(dir)).rejects.toBeInstanceOf(DataDirLocked)
  })

  it.each(['', '{', 'null', '{"pid":"1"}', '{"pid":0}'])(
    'is taken over if its file is old and contains no process ID (%j)',
    async content => {
      writeFileSync(lockFile(), content)
      utimesSync(lockFile(), new Date(0), new Date(0))
      await (await lockDataDir(dir)).release()
    },
  )

  it('is taken over from a process that was killed during its own takeover', async () => {
    const holder = start()
    expect(await holder.line()).toBe('held')
    const dead = readFileSync(lockFile(), 'utf8')
    await holder.kill()
    writeFileSync(`${lockFile()}.takeover`, dead)
    writeFileSync(`${lockFile()}.takeover.takeover`, dead)
    expect(await start().line()).toBe('held')
    expect(readdirSync(dir)).toEqual(['peage.lock'])
  })

  it.each(['a free folder', 'a stale lock'])(
    'is acquired by exactly one of many processes that race for %s',
    async what => {
      const racers = Array.from({ length: 6 }, () => start('on-line'))
      for (const racer of racers) expect(await racer.line()).toBe('ready')
      if (what === 'a stale lock') {
        const dead = start()
        expect(await dead.line()).toBe('held')
        await dead.kill()
      }
      for (const racer of racers) racer.process.stdin.write('go\n')
      const lines = await Promise.all(racers.map(racer => racer.line()))
      expect(lines.filter(line => line === 'held')).toHaveLength(1)
      const winner = racers[lines.indexOf('held')]?.process.pid
      for (const line of lines.filter(line => line !== 'held')) expect(JSON.parse(line).pid).toBe(winner)
    },
  )

  it('is taken over by exactly one attempt if one process makes many attempts at once', async () => {
    const holder = start()
    expect(await holder.line()).toBe('held')
    const dead = readFileSync(lockFile(), 'utf8')
    await holder.kill()
    for (let round = 0; round < 30; round += 1) {
      writeFileSync(lockFile(), dead)
      const attempts = await Promise.allSettled(Array.from({ length: 5 }, () => lockDataDir(dir)))
      const won = attempts.filter(attempt => attempt.status === 'fulfilled')
      expect(won).toHaveLength(1)
      await won[0]?.value.release()
    }
  })
})
