// Measures the resident memory of a process.
import { readFileSync } from 'node:fs'
import { MiB } from './noise.ts'

/** @returns the resident memory in MiB */
export function residentOf(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return (Number(kilobytes) * 1024) / MiB
}

/** Figures of the resident memory in MiB. */
export interface Peak<T> {
  readonly before: number
  readonly peak: number
  readonly growth: number
  readonly result: T
}

/** Samples the memory of a process 20 times per second while `work` runs. */
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
