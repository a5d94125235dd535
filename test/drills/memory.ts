// The resident memory of a process, as the system counts it.
import { readFileSync } from 'node:fs'
import { MiB } from './noise.ts'

/** @returns MiB */
export function residentOf(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return (Number(kilobytes) * 1024) / MiB
}

/** In MiB. */
export interface Peak<T> {
  readonly before: number
  readonly peak: number
  readonly growth: number
  readonly result: T
}

/** Measures 20 times a second how high the memory of a process rises while `work` runs. */
export async function peakDuring<T>(pid: number, work: () => Promise<T>): Promise<Peak<T>> {
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
