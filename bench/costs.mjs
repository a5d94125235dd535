// What the kernel says that processes have used.
import { readdirSync, readFileSync } from 'node:fs'

/**
 * Seconds on a processor, user and system, of all threads: finer than the ticks of /proc/PID/stat.
 * @param {readonly number[]} pids
 */
export function cpuSeconds(pids) {
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
 * @param {readonly number[]} pids
 */
export function peakMemory(pids) {
  let kilobytes = 0
  for (const pid of pids) {
    kilobytes += Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
  }
  return kilobytes / 1024
}

/**
 * A process and all below it.
 * @param {number} pid
 * @returns {number[]}
 */
export function processTree(pid) {
  const children = readdirSync(`/proc/${pid}/task`).flatMap(thread =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
  )
  return [pid, ...children.flatMap(processTree)]
}

/**
 * How a process calls itself.
 * @param {number} pid
 */
export function commandLine(pid) {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
}
