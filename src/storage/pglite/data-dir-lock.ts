// Locks a data folder for one process, because two processes on one PGlite folder silently lose rows.
import { randomUUID } from 'node:crypto'
import { readFileSync, renameSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export class DataDirLocked extends Error {
  override readonly name = 'DataDirLocked'
  readonly pid: number

  constructor(dir: string, pid: number) {
    super(
      `the data folder ${dir} is in use by another Péage (process ${pid}). ` +
        'Stop that process first, or set another storage.data_dir.',
    )
    this.pid = pid
  }
}

/**
 * How long an empty lock file counts as a lock. A process creates the file and writes its content within microseconds.
 */
const EMPTY_LOCK_TTL_MS = 1_000
/** How long a process waits for another process that takes over the same stale lock. */
const TAKEOVER_TIMEOUT_MS = 5_000

/**
 * Acquires `<dir>/peage.lock`. If the process that owns an existing lock has ended, the lock is taken over. A process
 * is identified by its pid and its start time, because pids are reused. For example, every container has a process 1.
 * If only the pid were compared, an old lock could lock the folder forever.
 * @returns the function `release`, which releases the folder; a second call has no effect
 * @throws DataDirLocked if the process that owns the lock is running
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
 * Creates `file`, or replaces it if the process that owns it has ended. A stale file is never deleted. Otherwise, if
 * two processes found it at the same time, the second one could delete the new lock of the first one. Only the owner of
 * `<file>.takeover` may replace the stale file. The owner first checks that the stale file is unchanged, and then
 * renames `<file>.takeover` to `file`. If the owner dies before that, another process takes over `<file>.takeover` in
 * the same way.
 */
async function acquire(file: string, mine: string, dir: string): Promise<void> {
  const deadline = Date.now() + TAKEOVER_TIMEOUT_MS
  for (;;) {
    if (create(file, mine)) return
    const theirs = read(file)
    if (theirs === undefined) {
      // If the lock file was deleted in the meantime, the next attempt creates it. If the lock file is a broken link,
      // every attempt fails.
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
  /** The start time of the process; absent if the system does not report it. */
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
    // EPERM means that the process is running as another user.
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
  }
  const now = processStart(pid)
  return now !== 'ended' && (started === undefined || now === undefined || now === started)
}

/**
 * Returns the boot ID and the start time of the process, in clock ticks since boot. The start time is field 22 of
 * `/proc/PID/stat` (proc(5)). The fields are counted from the last `)`, because the name of the command may contain
 * spaces.
 */
function processStart(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [state, ticks] = [fields[0], fields[19]]
    // The process has ended, but its parent has not yet read its exit status.
    if (state === 'Z' || state === 'X') return 'ended'
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}:${ticks}`
  } catch {
    return undefined
  }
}
