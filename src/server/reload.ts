// Another configuration is brought in force while clients are served: wholly, or not at all (CONTRACT §1, signals).
import type { Logger } from 'pino'
import { inSlices } from '../async/steps.ts'
import { changeSteps } from '../config/changes.ts'
import type { ConfigurationFile } from '../config/config-file.ts'
import { linesOf, logWarnings } from '../config/diagnostics.ts'
import type { Reread } from '../config/reading/read-apart.ts'
import { keepFixed } from '../config/reload-plan.ts'
import type { Config } from '../config/schema/schema.ts'
import type { Tallies } from '../observability/metrics/counters.ts'
import type { Chores } from './primary-services.ts'
import type { Serving } from './serve.ts'

export interface Reload {
  /** Reads the file and all that it names again. Resolves when that is in force, or refused; never rejects. */
  now(): Promise<void>
  /** `server.drain_timeout` in force, milliseconds. */
  drainTimeout(): number
  /** Takes nothing more. */
  stop(): void
}

export interface Reloaded {
  readonly file: ConfigurationFile
  /** Told what is wrong, a line each, as `peage check` prints it. */
  onRefused(lines: readonly string[]): void
}

interface Parts {
  config: Config
  /** Nothing where nobody can ask for another configuration. */
  reloaded: Reloaded | undefined
  serving: Pick<Serving, 'prepare'>
  chores: Pick<Chores, 'take'>
  tallies: Pick<Tallies, 'reloaded'>
  logger: Logger
}

export function createReload(parts: Parts): Reload {
  const { reloaded, serving, chores, tallies, logger } = parts
  let inForce = parts.config
  let digestInForce = reloaded?.file.digest()
  let isOver = false
  let running: Promise<void> | undefined
  let isAskedAgain = false

  function refuse(lines: readonly string[]): void {
    tallies.reloaded('failure')
    reloaded?.onRefused(lines)
    logger.error({ problems: lines }, 'the new configuration is refused, the one before stays in force')
  }

  async function take({ config: written, lines, warnings, digest }: Taken): Promise<void> {
    const { config, left } = keepFixed(inForce, written)
    const changes = await inSlices(changeSteps(inForce, config))
    const prepared = await serving.prepare(config)
    if (isOver) {
      await prepared.drop()
      return
    }
    logger.level = config.server.log.level
    await prepared.take()
    chores.take(config)
    inForce = config
    const isSameFile = digest !== undefined && digest === digestInForce
    digestInForce = digest
    tallies.reloaded('success')
    for (const pointer of left) {
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

  async function reload({ file }: Reloaded): Promise<void> {
    try {
      const read = await file.reload()
      if (isOver) return
      if ('problems' in read) refuse(linesOf(read))
      else await take(read)
    } catch (error) {
      refuse([`error: ${error instanceof Error ? error.message : error}`])
    }
  }

  async function reloadWhileAsked(): Promise<void> {
    do {
      isAskedAgain = false
      if (!isOver && reloaded !== undefined) await reload(reloaded)
    } while (isAskedAgain)
    running = undefined
  }

  function now(): Promise<void> {
    // What was saved while one is under way may have been read too early by it.
    if (running !== undefined) isAskedAgain = true
    running ??= reloadWhileAsked()
    return running
  }

  const unwatch = reloaded?.file.watch(now)
  return {
    now,
    drainTimeout: () => inForce.server.drain_timeout,
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
