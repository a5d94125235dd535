// Merges the metrics of all workers, including the workers that have exited. If the exited workers were left out,
// counters would fall. Prometheus would treat the fall as a reset, and count too much.
import { mergedCounters } from '../../observability/metrics/exposition.ts'
import type { FamilyJson } from '../../observability/metrics/families.ts'

type Families = readonly FamilyJson[]

interface WorkerMetrics {
  /** Undefined if the slot has no worker. */
  pid: number | undefined
  /**
   * The metrics in the worker's reply; undefined if the worker did not reply in time. If the reply lacks a metric, the
   * values of the previous reply are used.
   */
  families: Families | undefined
}

/**
 * @returns a function that receives the replies of the running workers. It returns the metrics of all workers,
 *   including the counters of exited workers.
 */
export function createMergedMetrics(): (answers: readonly WorkerMetrics[]) => Promise<Families[]> {
  const latest = new Map<number, Families>()
  /**
   * The counters of exited workers, with one entry per worker. Only the first entry may be the total of several
   * workers.
   */
  let gone: Families[] = []
  let isAdding = false

  return async answers => {
    for (const { pid, families } of answers) {
      if (pid === undefined || families === undefined) continue
      const given = new Set(families.map(({ name }) => name))
      const before = latest.get(pid) ?? []
      latest.set(pid, [...families, ...before.filter(({ name }) => !given.has(name))])
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

/**
 * The maximum number of exited workers whose counters are stored separately. If more workers have exited, their
 * counters are added up.
 */
const maxSeparate = 8
