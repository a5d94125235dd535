// Finds processes that still run after a test run. All processes of the run inherit a mark in their environment.
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** How long processes may take to end after the run. A process that takes longer counts as left behind. */
const graceMs = 3_000

/** Marks all processes started from now on. @returns a function that lists the marked processes that still run */
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

/** Returns the marked processes that still run; an empty list on systems without `/proc`. */
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
      // A zombie has no command line and does not count. Workers of Vitest do not count either, because Vitest ends
      // them.
      if (command === '' || command.includes('/vitest/dist/workers/')) return []
      return isMarked(pid, mark) ? [`${pid} ${command}`] : []
    } catch {
      // The process has ended after the list was read, or it belongs to another user. In both cases it does not count.
      return []
    }
  })
}

function isMarked(pid: string, mark: string): boolean {
  return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`TEST_RUN=${mark}`)
}
