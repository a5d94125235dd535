// What workers have counted, those that are gone too: a sum that falls would look like a flood to Prometheus.
import { mergedCounters } from '../../observability/metrics/exposition.ts'
import type { FamilyJson } from '../../observability/metrics/families.ts'

type Families = readonly FamilyJson[]

interface WorkerMetrics {
  /** Nothing where there is no worker. */
  pid: number | undefined
  /** Nothing where it did not answer in time: what it said before stands. */
  families: Families | undefined
}

/** @returns takes what the workers that there are have answered, and adds what is known of the others */
export function createMergedMetrics(): (answers: readonly WorkerMetrics[]) => Promise<Families[]> {
  const latest = new Map<number, Families>()
  /** The first is the total of many. */
  let gone: Families[] = []
  let isAdding = false

  return async answers => {
    for (const { pid, families } of answers) {
      if (pid !== undefined && families !== undefined) latest.set(pid, families)
    }
    const here = new Set(answers.map(({ pid }) => pid))
    const left = [...latest].filter(([pid]) => !here.has(pid))
    for (const [pid, families] of left) {
      latest.delete(pid)
      gone.push(families.filter(({ type }) => type !== 'gauge'))
    }
    const all = [...gone, ...latest.values()]
    if (gone.length > maxSeparate && !isAdding) {
      isAdding = true
      const added = gone.length
      const total = await mergedCounters(gone)
      gone = [total, ...gone.slice(added)]
      isAdding = false
    }
    return all
  }
}

/** Of the dead that are kept apart. */
const maxSeparate = 8
