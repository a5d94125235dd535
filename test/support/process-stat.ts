// Reads the state, parent, children and resource usage of a process from /proc (see proc(5)).
import { readdirSync, readFileSync } from 'node:fs'

/** @returns `undefined` if the process has ended; the state is a letter, for example `T` (stopped) or `Z` (zombie) */
export function processStat(pid: number): { readonly state: string; readonly parent: number } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // Only the text after the last `)` is split. The program name before it may contain spaces and `)`.
    const [state = '', parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { state, parent: Number(parent) }
  } catch {
    return undefined
  }
}

/** Returns the IDs of the direct child processes. */
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

/** Returns whether the process runs. A zombie does not count as alive. */
export function isAlive(pid: number): boolean {
  return (processStat(pid)?.state ?? 'Z') !== 'Z'
}

/** Blocks until a process is stopped after a SIGSTOP. A process stops only when it next leaves the kernel. */
export function waitUntilStopped(pid: number): void {
  const pause = new Int32Array(new SharedArrayBuffer(4))
  const goesOn = () => isAlive(pid) && processStat(pid)?.state !== 'T'
  for (let tries = 0; tries < 1_000 && goesOn(); tries += 1) Atomics.wait(pause, 0, 0, 1)
}

/** Returns the CPU seconds (user and system) of all threads. `schedstat` is more precise than `/proc/PID/stat`. */
export function cpuSeconds(pids: readonly number[]) {
  let nanoseconds = 0
  for (const pid of pids) {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      nanoseconds += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0])
    }
  }
  return nanoseconds / 1e9
}

/** Returns the sum of the peak memory of the processes in MiB. */
export function peakMemory(pids: readonly number[]) {
  let kilobytes = 0
  for (const pid of pids) {
    kilobytes += Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
  }
  return kilobytes / 1024
}

/** Returns the IDs of a process and of all its descendants. */
export function processTree(pid: number): number[] {
  const children = readdirSync(`/proc/${pid}/task`).flatMap(thread =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
  )
  return [pid, ...children.flatMap(processTree)]
}

/** Returns the command line of a process. */
export function commandLine(pid: number) {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
}
