// Locks a data folder for one process: two processes on one PGlite folder silently lose rows.
import { randomUUID } from 'node:crypto'
import { readFileSync, renameSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** Another running process holds the folder. */
export class DataDirLocked extends Error {
  override readonly name = 'DataDirLocked'
  readonly pid: number

  constructor(dir: string, pid: number) {
    super(
      `the data folder ${dir} is in use by another Péage (process ${pid}): ` +
        'stop that one first, or give this one a data_dir of its own',
    )
    this.pid = pid
  }
}

/** How long an empty lock file is honoured: its writer died within microseconds of creating it. */
const EMPTY_LOCK_TTL_MS = 1_000
/** How long a process waits for another one that is taking over the same stale lock. */
const TAKEOVER_TIMEOUT_MS = 5_000

/**
 * Acquires `<dir>/peage.lock`; a lock whose process is gone is taken over. A process is identified by its pid and
 * start time, so that a reused pid (process 1 of every container) does not hold the folder forever.
 * @returns `release` gives the folder up; a second call does nothing
 * @throws DataDirLocked when its process is alive
 */
export async function lockDataDir(dir: string): Promise<{ release(): Promise<void> }> {
  const file = join(dir, 'peage.lock')
  const mine = JSON.stringify({ pid: process.pid, started: processStart(process.pid), lock: randomUUID() })
  await acquire(file, mine, dir)
  return {
    async release() {
      if (read(file) === mine) unlinkSync(file)
    },
  }
}

/**
 * Creates `file`, or replaces it when its process is gone. Deleting a stale file would race: a second process could
 * delete the first one's new lock. So only the holder of `<file>.takeover` may replace it, by renaming that file over
 * it, and only if it is still the stale file that was found. If that holder dies, its file is taken over in the same
 * way.
 */
async function acquire(file: string, mine: string, dir: string): Promise<void> {
  const deadline = Date.now() + TAKEOVER_TIMEOUT_MS
  for (;;) {
    if (create(file, mine)) return
    const theirs = read(file)
    if (theirs === undefined) {
      // Released meanwhile, or a link to a place that does not exist, which stays.
      if (Date.now() > deadline)
        throw Object.assign(new Error(`${file} is a broken link`), { code: 'EEXIST' })
      await sleep(10)
      continue
    }
    const owner = parse(theirs)
    if (owner === undefined ? isRecent(file) : isAlive(owner)) {
      if (owner !== undefined && (!file.endsWith('.takeover') || Date.now() > deadline)) {
        throw new DataDirLocked(dir, owner.pid)
      }
      await sleep(10)
      continue
    }
    const guard = `${file}.takeover`
    await acquire(guard, mine, dir)
    if (read(file) === theirs) {
      renameSync(guard, file)
      return
    }
    unlinkSync(guard)
  }
}

interface Owner {
  pid: number
  /** Absent on systems that do not report it. */
  started?: string
}

function create(file: string, content: string): boolean {
  try {
    writeFileSync(file, content, { flag: 'wx', mode: 0o600 })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function parse(content: string): Owner | undefined {
  try {
    const owner = JSON.parse(content) as Owner
    return Number.isInteger(owner.pid) && owner.pid > 0 ? owner : undefined
  } catch {
    return undefined
  }
}

function isRecent(file: string): boolean {
  try {
    return Date.now() - statSync(file).mtimeMs < EMPTY_LOCK_TTL_MS
  } catch {
    return true
  }
}

function isAlive({ pid, started }: Owner): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    // EPERM: it is alive, under another user.
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
  }
  const now = processStart(pid)
  return now !== 'ended' && (started === undefined || now === undefined || now === started)
}

/** The boot id and the process' start in clock ticks since boot (proc(5): field 22, after the command's `)`). */
function processStart(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [state, ticks] = [fields[0], fields[19]]
    // A zombie: killed, but not yet reaped by its parent.
    if (state === 'Z' || state === 'X') return 'ended'
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}:${ticks}`
  } catch {
    return undefined
  }
}
