// One process at a time on a data folder: two on one PGlite folder silently lose rows.
import { randomUUID } from 'node:crypto'
import { readFileSync, renameSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** Another process, which is alive, holds the folder. */
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

export interface DataDirLock {
  /** Gives the folder up; a second call does nothing. */
  release(): Promise<void>
}

/** How long a lock file without content (its writer died within microseconds of making it) holds, in ms. */
const EMPTY_LOCK_TTL_MS = 1_000
/** How long a process waits for another that is taking over the same stale lock, in ms. */
const TAKEOVER_TIMEOUT_MS = 5_000

/**
 * Takes `<dir>/peage.lock`; one whose process is gone is taken over. A process is known by its id and the
 * time it started, so that a reused id (every container's process 1) does not hold the folder for ever.
 * @throws DataDirLocked where its process is alive
 */
export async function lockDataDir(dir: string): Promise<DataDirLock> {
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
 * Creates `file`, or replaces it where its process is gone. Deleting a stale file would race: a second taker
 * could delete the first one's new lock. So only who holds `<file>.takeover` may replace it, by renaming that
 * over it, and only if it is still the file that was found stale. A taker that died is taken over likewise.
 */
async function acquire(file: string, mine: string, dir: string): Promise<void> {
  const deadline = Date.now() + TAKEOVER_TIMEOUT_MS
  for (;;) {
    if (create(file, mine)) return
    const theirs = read(file)
    if (theirs === undefined) continue
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
  /** Absent where the system does not tell it. */
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
    // EPERM: it lives, under another user.
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
  }
  const now = processStart(pid)
  return now !== 'ended' && (started === undefined || now === undefined || now === started)
}

/** The boot's id and the process' start in clock ticks since it (proc(5): field 22, after the command's `)`). */
function processStart(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [state, ticks] = [fields[0], fields[19]]
    // A zombie: killed, and its parent has not looked.
    if (state === 'Z' || state === 'X') return 'ended'
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}:${ticks}`
  } catch {
    return undefined
  }
}
