// Reloads the configuration during operation, completely or not at all.
import { setImmediate } from 'node:timers/promises'
import type { ReloadOutcome } from '../admin/configuration-record.ts'
import type { GatewayProcess } from '../composition/process.ts'
import type { ConfigFile } from '../config/config-file.ts'
import { type ListedProblem, linesOf, logWarnings } from '../config/diagnostics.ts'
import { maskProblems } from '../config/listing.ts'
import type { ReadConfig } from '../config/load-in-worker.ts'
import { machineFailure } from '../config/read-file.ts'
import { diffConfigs, keepImmutable } from '../config/reload-plan.ts'
import type { DataPlane } from './serve.ts'

export interface Reload {
  /**
   * Reads the configuration, including all files that it refers to. Resolves when the new configuration is active or
   * was refused. The promise never rejects.
   */
  now(): Promise<void>
  /** Stops watching the file. A reload in progress is rolled back if it is not yet committed. */
  stop(): void
}

export interface ReloadSource {
  readonly file: ConfigFile
  /** Receives the problems, one per line, in the format of `peage check`. */
  onRefused(lines: readonly string[]): void
}

interface Options {
  gatewayProcess: GatewayProcess
  /** Undefined if the configuration cannot be reloaded. */
  source: ReloadSource | undefined
  dataPlane: Pick<DataPlane, 'prepare'>
  onOutcome(outcome: ReloadOutcome): void
}

export function createReload({ gatewayProcess, source, dataPlane, onOutcome }: Options): Reload {
  const { config: current, logger } = gatewayProcess
  const { counters } = gatewayProcess.metrics
  let activeDigest = source?.file.digest()
  let isOver = false
  let running: Promise<void> | undefined
  let isRequestedAgain = false
  let retry: NodeJS.Timeout | undefined

  /**
   * Tries the reload again later. A system error prevented the gateway from reading the configuration, or from opening
   * something that the configuration needs. The configuration itself may be valid.
   */
  function tryAgainLater(reason: string): void {
    if (retry === undefined) logger.warn({ reason }, unread)
    retry = setTimeout(now, retryMs).unref()
  }

  function refuse(lines: readonly string[], problems: readonly ListedProblem[]): void {
    counters.countReload('refused')
    onOutcome({ problems })
    source?.onRefused(lines)
    logger.error({ problems: lines }, 'new configuration rejected; the previous one stays active')
  }

  async function apply({ config: written, lines, warnings, listing, digest }: ReadConfig): Promise<void> {
    const { config, restartRequired } = keepImmutable(current.get(), written)
    const changes = diffConfigs(current.get(), config)
    // With 10,000 routes, the comparison takes a tenth of a second, and the preparation takes the same time. This pause
    // between the two lets requests run.
    await setImmediate()
    const prepared = await dataPlane.prepare(config)
    if (isOver) {
      await prepared.rollback()
      return
    }
    const { late, everywhere } = await prepared.commit()
    const isSameFile = digest !== undefined && digest === activeDigest
    activeDigest = digest
    counters.countReload(late.length === 0 ? 'success' : 'incomplete')
    const problems = late.map(pid => ({
      ...start,
      path: '',
      text: `worker ${pid} did not activate the configuration in time and is being replaced`,
    }))
    onOutcome({ problems, active: { config, listing, restartRequired } })
    for (const pointer of restartRequired) {
      const key = pointer.slice(1).replaceAll('/', '.')
      logger.warn(
        { key, line: lineOf(lines, pointer) },
        `${key} changed; restart the gateway to apply the change`,
      )
    }
    logWarnings(warnings, logger)
    // An outdated mount may show the old file forever. So if the file is unchanged, the log must not suggest that a
    // change was applied.
    if (late.length > 0) {
      logger.error({ workers: late, ...changes }, incomplete)
      void everywhere.then(() => {
        if (current.get() === config && counters.lastReload() === 'incomplete') counters.completeReload()
      })
    } else if (isSameFile && Object.keys(changes).length === 0) logger.info({}, unchanged)
    else logger.info(changes, 'configuration reloaded')
  }

  async function reload({ file }: ReloadSource): Promise<void> {
    clearTimeout(retry)
    try {
      const read = await file.reload()
      if (isOver) return
      if ('problems' in read) refuse(linesOf(read), read.listed ?? maskProblems(read))
      else await apply(read)
      retry = undefined
    } catch (error) {
      const failure = machineFailure(error)
      if (failure !== undefined) return tryAgainLater(failure)
      retry = undefined
      // Operators receive a fixed text, because the message of the error may contain values from the configuration
      // file.
      const text = 'the gateway cannot apply this configuration; the log contains the reason'
      refuse([`error: ${error instanceof Error ? error.message : error}`], [{ ...start, path: '', text }])
    }
  }

  async function reloadWhileRequested(): Promise<void> {
    do {
      isRequestedAgain = false
      if (!isOver && source !== undefined) await reload(source)
    } while (isRequestedAgain)
    running = undefined
  }

  function now(): Promise<void> {
    // A reload in progress may have read the file before the latest change was saved. So another reload follows.
    if (running !== undefined) isRequestedAgain = true
    running ??= reloadWhileRequested()
    return running
  }

  const unwatch = source?.file.watch(now)
  return {
    now,
    stop() {
      isOver = true
      clearTimeout(retry)
      unwatch?.()
    },
  }
}

const start = { line: 1, column: 1 }

/** The delay before the next try after a system error. Errors in the content of the file are not tried again. */
const retryMs = 1_000

const unread = 'configuration could not be read; trying again every second'

const incomplete = 'reload incomplete; replacing workers that did not activate the configuration in time'

const unchanged = 'configuration reloaded; the file is unchanged'

type Lines = Readonly<Record<string, number>>

/** Returns the line of the value at a JSON pointer. If the value is absent, returns the line of its parent. */
function lineOf(lines: Lines, pointer: string): number {
  return lines[pointer] ?? lines[pointer.slice(0, pointer.lastIndexOf('/'))] ?? 1
}
