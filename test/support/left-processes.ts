// Finds the processes that a run of the tests left behind, by a mark in the environment that each of them inherits.
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** How long a process that was told to end may take. */
const graceMs = 3_000

/** Marks all that is started from here on; what returns lists those that are alive, their pid and command line each. */
export function markProcesses(): () => Promise<string[]> {
  const mark = `${process.pid}.${Date.now()}`
  process.env.TEST_RUN = mark
  return async () => {
    for (const deadline = Date.now() + graceMs; ; await sleep(50)) {
      const left = alive(mark)
      if (left.length === 0 || Date.now() > deadline) return left
    }
  }
}

/** None where the system has no `/proc`. */
function alive(mark: string): string[] {
  let names: string[]
  try {
    names = readdirSync('/proc')
  } catch {
    return []
  }
  return names.flatMap(pid => {
    if (!/^\d+$/.test(pid)) return []
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
      // A zombie has none; vitest ends its own.
      if (command === '' || command.includes('/vitest/dist/workers/')) return []
      return isMarked(pid, mark) ? [`${pid} ${command}`] : []
    } catch {
      // It ended in between, or is somebody else's.
      return []
    }
  })
}

function isMarked(pid: string, mark: string): boolean {
  return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`TEST_RUN=${mark}`)
}
