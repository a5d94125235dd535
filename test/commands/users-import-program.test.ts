// Tests `peage users import` as a process on Postgres: kills, signals, several imports at the same time, and memory.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { readCsv } from '../../src/commands/users/import/csv.ts'
import { importRecords } from '../../src/commands/users/import/import-records.ts'
import { openPostgres, type PostgresDatabase } from '../../src/storage/postgres/postgres.ts'
import { builtInPlans } from '../support/plans.ts'
import { peakMemory } from '../support/process-stat.ts'
import { cli } from '../support/processes.ts'
import { describeWithServices, isFullMatrix } from '../support/services.ts'
import { runIn } from './peage.ts'
import { bcryptHash, importsOf, jsonLines } from './users-import-setup.ts'
import { postgresPlace } from './users-setup.ts'

/** The control sequence EL (erase in line) of ECMA-48. */
const eraseToEnd = '\u001b[K'

describeWithServices('peage users import as a process', () => {
  const place = postgresPlace()
  const { clear } = importsOf(place)
  const started: ChildProcess[] = []
  beforeEach(clear)
  afterEach(() => {
    for (const child of started) child.kill('SIGKILL')
    started.length = 0
  })

  function start(...words: string[]) {
    const { PATH, TEST_RUN } = process.env
    const child = spawn(process.execPath, [cli, 'users', 'import', ...words], {
      cwd: place.cwd,
      env: { PATH, TEST_RUN },
    })
    started.push(child)
    const closed = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    const ended = closed.then(([stdout, stderr, [code, signal]]) => ({
      exit: code ?? signal,
      stdout,
      stderr,
    }))
    // The process may end before all input is written.
    child.stdin.on('error', () => {})
    return { child, ended }
  }

  async function write({ stdin }: { stdin: ChildProcess['stdin'] }, bytes: string | Buffer): Promise<void> {
    if (!stdin?.write(bytes)) await Promise.race([once(stdin as NodeJS.EventEmitter, 'drain'), sleep(60_000)])
  }

  // One connection stays open. On a busy machine, a new connection may exceed the time limit for opening a connection.
  let watcher: PostgresDatabase
  beforeAll(() => {
    const { postgres = '' } = place.configuration()
    watcher = openPostgres({ url: postgres, maxConnections: 1, onError: () => {} })
  })
  afterAll(() => watcher.close())
  const created = async () => {
    const [row] = await watcher.query<{ users: number }>('select count(*) as users from users')
    return row?.users ?? 0
  }
  const isLockAwaited = async () =>
    (await watcher.query("select 1 as row from pg_locks where not granted and relation = 'users'::regclass"))
      .length > 0
  const userOf = (n: number) => ({
    ...{ email: `user${n}@example.com`, id: n + 1, password_hash: bcryptHash, plan: 'pro' },
    identities: [{ issuer: 'https://id.example', sub: `${n}` }],
  })
  const usersOf = (count: number) => Array.from({ length: count }, (_, n) => userOf(n))

  /** Expects `count` users, each with its subscription and its identity. */
  async function expectWhole(count: number): Promise<void> {
    const rows = await place.inside(database =>
      database.query(
        `select count(*) as users, count(distinct u.email) as emails, count(distinct u.id) as ids,
                count(s.user_id) as subscriptions, count(i.user_id) as identities
           from users u left join subscriptions s on s.user_id = u.id and s.plan = u.plan
           left join identities i on i.user_id = u.id`,
      ),
    )
    const all = { users: count, emails: count, ids: count, subscriptions: count, identities: count }
    expect(rows).toEqual([all])
  }

  it('creates every user exactly once, even if it is killed several times and started again', async () => {
    const count = 12_000
    writeFileSync(join(place.cwd, 'many.jsonl'), jsonLines(usersOf(count)))
    for (const part of [1, 3_000, 7_000]) {
      const { child, ended } = start('many.jsonl')
      while ((await created()) < part) await sleep(10)
      child.kill('SIGKILL')
      expect((await ended).exit).toBe('SIGKILL')
      const stored = await created()
      expect(stored % 500).toBe(0)
      expect(stored).toBeLessThan(count)
      await expectWhole(stored)
    }
    const stored = await created()
    expect(await start('many.jsonl').ended).toEqual({
      exit: 0,
      stdout: `${count} read, ${count - stored} created, ${stored} skipped, 0 faults\n`,
      stderr: '',
    })
    await expectWhole(count)
  })

  it.each(['with ids', 'without ids'])('can run three times at the same time, for users %s', async ids => {
    const count = 5_000
    const given = usersOf(count).map(user => (ids === 'with ids' ? user : { ...user, id: undefined }))
    writeFileSync(join(place.cwd, 'up.jsonl'), jsonLines(given))
    writeFileSync(join(place.cwd, 'down.jsonl'), jsonLines(given.toReversed()))
    const all = ['up', 'down', 'up'].map(name => start(`${name}.jsonl`, '--json').ended)
    let sum = 0
    for (const { exit, stdout, stderr } of await Promise.all(all)) {
      expect({ exit, stderr }).toEqual({ exit: 0, stderr: '' })
      const { read, created, skipped } = JSON.parse(stdout)
      expect({ read, ended: created + skipped }).toEqual({ read: count, ended: count })
      sum += created
    }
    expect(sum).toBe(count)
    await expectWhole(count)
    if (ids === 'with ids') {
      const [next] = await place.inside(database =>
        database.query(
          "insert into users (email, password_hash) values ('next@example.com', '!') returning id",
        ),
      )
      expect(next).toEqual({ id: count + 1 })
    }
  })

  it('never moves the id sequence back while other users register', async () => {
    // These ids are just above the sequence, so the import and the registrations compete for the same ids.
    writeFileSync(join(place.cwd, 'ids.jsonl'), jsonLines(usersOf(3_000)))
    const { ended } = start('ids.jsonl', '--json')
    let isRunning = true
    void ended.then(() => {
      isRunning = false
    })
    let registered = 0
    await place.inside(async database => {
      while (isRunning) {
        registered += 1
        // If the sequence moved back, the next id would be taken, and this insert would fail with 23505.
        await database.query("insert into users (email, password_hash) values ($1, '!')", [
          `r${registered}@example.com`,
        ])
      }
    })
    expect(JSON.parse((await ended).stdout).created + registered).toBe(await created())
  })

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('on %s, completes the running transaction and prints a summary', async (signal, exit) => {
    const { child, ended } = start('-', '--format', 'jsonl')
    await write(child, jsonLines(usersOf(700)))
    while ((await created()) < 500) await sleep(5)
    child.kill(signal)
    expect(await ended).toEqual({ exit, stdout: '500 read, 500 created, 0 skipped, 0 faults\n', stderr: '' })
    await expectWhole(500)
  })

  it('ends immediately if a second, different signal arrives', async () => {
    const { child, ended } = start('-', '--format', 'jsonl')
    await place.inside(database =>
      database.transaction(async tx => {
        await tx.query('lock table users')
        await write(child, jsonLines(usersOf(500)))
        while (!(await isLockAwaited())) await sleep(5)
        child.kill('SIGINT')
        // The process prints nothing when it receives the first signal, so the test waits for a fixed time.
        await sleep(500)
        child.kill('SIGTERM')
        expect(await ended).toEqual({ exit: 'SIGTERM', stdout: '', stderr: '' })
      }),
    )
  })

  it('starts no further transaction after a signal, even if the next users have already been read', async () => {
    const stop = new AbortController()
    async function* records() {
      for (let line = 1; line <= 1_500; line += 1)
        yield { line, members: { email: `user${line}@example.com` } }
    }
    const counts = { read: 0, created: 0, skipped: 0, problems: 0 }
    await importRecords({
      ...{ records: records(), counts, signal: stop.signal, onConflict: 'skip' },
      ...{ plans: builtInPlans, printProblems: async () => {} },
      async store(users) {
        await sleep(200)
        stop.abort()
        return users.map(() => 'created')
      },
    })
    expect(counts).toEqual({ read: 500, created: 500, skipped: 0, problems: 0 })
  })

  it('reports no fault if a signal stops it inside the header of a CSV file', async () => {
    const stop = new AbortController()
    async function* cut() {
      yield Buffer.from('email,i')
      stop.abort()
    }
    const counts = { read: 0, created: 0, skipped: 0, problems: 0 }
    await importRecords({
      ...{ records: readCsv(cut()), counts, signal: stop.signal, onConflict: 'skip' },
      ...{ plans: builtInPlans, store: async () => [], printProblems: async () => {} },
    })
    expect(counts.problems).toBe(0)
  })

  describe('uses at most 200 MiB of memory', () => {
    const megabyte = 1_000_000
    const maxPeakMiB = 200

    /**
     * Writes `head`, then `chunk` several times, then `tail`. Expects little memory use. Returns the output without the
     * lines of progress. The import prints such a line every 10 s, so only on a slow machine.
     */
    async function flood(format: string, head: string, chunk: Buffer, times: number, tail: string) {
      const { child, ended } = start('-', '--format', format)
      await write(child, head)
      for (let n = 0; n < times; n += 1) await write(child, chunk)
      await write(child, tail)
      // The process waits for the end of its input, so it is still running here.
      const peak = peakMemory([child.pid ?? 0])
      child.stdin.end()
      const output = await ended
      expect(peak).toBeLessThan(maxPeakMiB)
      return { ...output, stderr: output.stderr.replace(/^\d+ lines, \d+ users\/s, \d+ faults\n/gm, '') }
    }
    const tooLarge =
      'record  The record is larger than 64 KiB. Shorten it, and check that every quote is closed.\n'

    it('with one line of JSON that is larger than this limit', async () => {
      const [a, b] = [{ email: 'a@example.com' }, { email: 'b@example.com' }]
      const output = await flood(
        'jsonl',
        jsonLines([a]),
        Buffer.alloc(megabyte, 'x'),
        isFullMatrix ? 1_000 : 300,
        `\n${jsonLines([b])}`,
      )
      expect(output).toEqual({
        exit: 1,
        stdout: '3 read, 2 created, 0 skipped, 1 faults\n',
        stderr: `-:2  ${tooLarge}`,
      })
    })

    it('with a CSV quote that is closed only after 100 MB', async () => {
      const output = await flood(
        'csv',
        'email\na@example.com\n"',
        Buffer.alloc(megabyte, `${'x'.repeat(99)}\n`),
        100,
        '"\nb@example.com\n',
      )
      expect(output).toEqual({
        exit: 1,
        stdout: '3 read, 2 created, 0 skipped, 1 faults\n',
        stderr: `-:3  ${tooLarge}`,
      })
    })

    it('with a CSV quote that is never closed', async () => {
      const output = await flood('csv', 'email\na@example.com\n"', Buffer.alloc(megabyte, 'x,\r\n'), 100, '')
      expect(output).toEqual({
        exit: 1,
        stdout: '2 read, 1 created, 0 skipped, 1 faults\n',
        stderr: `-:3  ${tooLarge}`,
      })
    })

    it('with 200,000 faults', async () => {
      const output = await flood('jsonl', '', Buffer.from('{}\n'.repeat(10_000)), 20, '')
      expect(output.stdout).toBe('200000 read, 0 created, 0 skipped, 200000 faults\n')
      const faults = output.stderr.split('\n').filter(line => line.startsWith('-:'))
      expect(faults).toHaveLength(200_000)
      expect(faults.at(-1)).toBe('-:200000  email  The email is missing. Add it.')
    })

    it('with many users', async () => {
      const count = isFullMatrix ? 30_000 : 10_000
      const { child, ended } = start('-', '--format', 'jsonl')
      await write(child, jsonLines(usersOf(count)))
      while ((await created()) < count) await sleep(50)
      expect(peakMemory([child.pid ?? 0])).toBeLessThan(maxPeakMiB)
      child.stdin.end()
      expect((await ended).stdout).toBe(`${count} read, ${count} created, 0 skipped, 0 faults\n`)
    })
  })

  describe('shows its progress', () => {
    it('on a terminal as a bar with the number of lines, users per second and faults', async () => {
      writeFileSync(join(place.cwd, 'some.jsonl'), `${jsonLines(usersOf(2_500))}{}\n`.repeat(2))
      const stderr = Object.assign(new PassThrough(), { isTTY: true })
      const { exit } = await runIn(place.cwd, ['users', 'import', 'some.jsonl'], { stderr })
      const printed: string = stderr.read().toString()
      expect(exit).toBe(1)
      expect(printed).toMatch(/\r\[#*\.*\] \d+ lines, \d+ users\/s, [012] faults/)
      expect(printed).toContain(`\r${eraseToEnd}some.jsonl:2501  email  The email is missing. Add it.\n`)
      expect(printed.endsWith(`\r${eraseToEnd}`)).toBe(true)
    })

    it('as a line every 10 s if standard error is not a terminal', async () => {
      vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
      try {
        const stdin = new PassThrough()
        const printed: string[] = []
        const ended = runIn(place.cwd, ['users', 'import', '-', '--format', 'jsonl'], {
          stdin,
          onError: soFar => printed.push(soFar),
        })
        stdin.write(`${jsonLines(usersOf(500))}{}\n`)
        while (printed.length < 1) await sleep(5)
        while ((await created()) < 500) await sleep(5)
        await sleep(50)
        vi.advanceTimersByTime(9_999)
        expect(printed).toHaveLength(1)
        vi.advanceTimersByTime(1)
        vi.advanceTimersByTime(10_000)
        expect(printed).toHaveLength(3)
        expect(printed[1]).toMatch(/\n501 lines, \d+ users\/s, 1 faults\n$/)
        stdin.end()
        expect(await ended).toMatchObject({ exit: 1, stdout: '501 read, 500 created, 0 skipped, 1 faults\n' })
      } finally {
        vi.useRealTimers()
      }
    })
  })
})
