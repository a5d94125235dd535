// Another configuration is brought in force while clients are served: wholly, or not at all (CONTRACT §1, signals).
import type { Logger } from 'pino'
import { inSlices } from '../async/steps.ts'
import { diffSteps } from '../config/changes.ts'
import type { ConfigFile } from '../config/config-file.ts'
import { linesOf, logWarnings } from '../config/diagnostics.ts'
import type { Reread } from '../config/reading/read-apart.ts'
import { keepImmutable } from '../config/reload-plan.ts'
import type { Config } from '../config/schema/schema.ts'
import type { Counters } from '../observability/metrics/counters.ts'
import type { PrimaryServices } from './primary-services.ts'
import type { DataPlane } from './serve.ts'

export interface Reload {
  /** Reads the file and all that it names again. Resolves when that is in force, or refused; never rejects. */
  now(): Promise<void>
  /** `server.drain_timeout` in force, milliseconds. */
  drainTimeoutMs(): number
  /** Takes nothing more. */
  stop(): void
}

export interface ReloadSource {
  readonly file: ConfigFile
  /** Told what is wrong, a line each, as `peage check` prints it. */
  onRefused(lines: readonly string[]): void
}

interface Options {
  config: Config
  /** Nothing where nobody can ask for another configuration. */
  source: ReloadSource | undefined
  dataPlane: Pick<DataPlane, 'prepare'>
  primaryServices: Pick<PrimaryServices, 'applyConfig'>
  counters: Pick<Counters, 'countReload'>
  logger: Logger
}

export function createReload(parts: Options): Reload {
  const { source, dataPlane, primaryServices, counters, logger } = parts
  let activeConfig = parts.config
  let digestInForce = source?.file.digest()
  let isOver = false
  let running: Promise<void> | undefined
  let isRequestedAgain = false

  function refuse(lines: readonly string[]): void {
    counters.countReload('failure')
    source?.onRefused(lines)
    logger.error({ problems: lines }, 'the new configuration is refused, the one before stays in force')
  }

  async function apply({ config: written, lines, warnings, digest }: Taken): Promise<void> {
    const { config, restartRequired } = keepImmutable(activeConfig, written)
    const changes = await inSlices(diffSteps(activeConfig, config))
    const prepared = await dataPlane.prepare(config)
    if (isOver) {
      await prepared.rollback()
      return
    }
    logger.level = config.server.log.level
    await prepared.commit()
    primaryServices.applyConfig(config)
    activeConfig = config
    const isSameFile = digest !== undefined && digest === digestInForce
    digestInForce = digest
    counters.countReload('success')
    for (const pointer of restartRequired) {
      const key = pointer.slice(1).replaceAll('/', '.')
      logger.warn(
        { key, line: lineOf(lines, pointer) },
        `${key} cannot be reloaded: restart to take its change`,
      )
    }
    logWarnings(warnings, logger)
    // A mount may show the old file for ever: that it was read again is then no sign that it was taken.
    if (isSameFile && Object.keys(changes).length === 0) logger.info({}, unchanged)
    else logger.info(changes, 'the configuration is reloaded')
  }

  async function reload({ file }: ReloadSource): Promise<void> {
    try {
      const read = await file.reload()
      if (isOver) return
      if ('problems' in read) refuse(linesOf(read))
      else await apply(read)
    } catch (error) {
      refuse([`error: ${error instanceof Error ? error.message : error}`])
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
    // What was saved while one is under way may have been read too early by it.
    if (running !== undefined) isRequestedAgain = true
    running ??= reloadWhileRequested()
    return running
  }

  const unwatch = source?.file.watch(now)
  return {
    now,
    drainTimeoutMs: () => activeConfig.server.drain_timeout,
    stop() {
      isOver = true
      unwatch?.()
    },
  }
}

const unchanged = 'the configuration is reloaded, and unchanged: the file has the same bytes as before'

type Taken = Extract<Reread, { config: Config }>
type Lines = Readonly<Record<string, number>>

/** Of what a pointer names, or of what that would stand in. */
function lineOf(lines: Lines, pointer: string): number {
  return lines[pointer] ?? lines[pointer.slice(0, pointer.lastIndexOf('/'))] ?? 1
}
