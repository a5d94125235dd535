// The resident memory of a process, as the system counts it.
import { readFileSync } from 'node:fs'
import { MiB } from './noise.mjs'

/** @param {number} pid @returns {number} MiB */
export function residentOf(pid) {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return (Number(kilobytes) * 1024) / MiB
}

/**
 * The highest that a process comes while some work is done, looked at 20 times a second.
 * @template T
 * @param {number} pid
 * @param {() => Promise<T>} work
 */
export async function peakDuring(pid, work) {
  const before = residentOf(pid)
  let peak = before
  const look = () => {
    peak = Math.max(peak, residentOf(pid))
  }
  const timer = setInterval(look, 50)
  try {
    const result = await work()
    look()
    return { before, peak, growth: peak - before, result }
  } finally {
    clearInterval(timer)
  }
}
