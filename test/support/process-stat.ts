// What proc(5) tells of a process: its state, its parent, its children, and what it has used.
import { readdirSync, readFileSync } from 'node:fs'

/** @returns `undefined` once it is gone; the state is a letter, as `T` for stopped and `Z` for ended */
export function processStat(pid: number): { readonly state: string; readonly parent: number } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The program's name before it may hold anything.
    const [state = '', parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { state, parent: Number(parent) }
  } catch {
    return undefined
  }
}

/** Direct children. */
export function childrenOf(parent: number): number[] {
  return allProcesses().filter(pid => processStat(pid)?.parent === parent)
}

function allProcesses(): number[] {
  try {
    return readdirSync('/proc').map(Number).filter(Number.isInteger)
  } catch {
    return []
  }
}

/** One that has ended, and was not asked yet how, is not. */
export function isAlive(pid: number): boolean {
  return (processStat(pid)?.state ?? 'Z') !== 'Z'
}

/** Blocks, for it is over in a moment: a process that is told to stop does so when it next leaves the kernel. */
export function waitUntilStopped(pid: number): void {
  const pause = new Int32Array(new SharedArrayBuffer(4))
  const goesOn = () => isAlive(pid) && processStat(pid)?.state !== 'T'
  for (let tries = 0; tries < 1_000 && goesOn(); tries += 1) Atomics.wait(pause, 0, 0, 1)
}

/**
 * Seconds on a processor, user and system, of all threads: finer than the ticks of /proc/PID/stat.
 */
export function cpuSeconds(pids: readonly number[]) {
  let nanoseconds = 0
  for (const pid of pids) {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      nanoseconds += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0])
    }
  }
  return nanoseconds / 1e9
}

/**
 * MiB, at most, since each process started.
 */
export function peakMemory(pids: readonly number[]) {
  let kilobytes = 0
  for (const pid of pids) {
    kilobytes += Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
  }
  return kilobytes / 1024
}

/**
 * A process and all below it.
 */
export function processTree(pid: number): number[] {
  const children = readdirSync(`/proc/${pid}/task`).flatMap(thread =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
  )
  return [pid, ...children.flatMap(processTree)]
}

/**
 * How a process calls itself.
 */
export function commandLine(pid: number) {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
}
