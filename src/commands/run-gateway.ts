// Runs a gateway until a signal ends it, for `peage start`.
import { systemClock } from '../clock.ts'
import { logWarnings } from '../config/diagnostics.ts'
import { openLog } from '../observability/stdout.ts'
import { openTracing, readTracing } from '../observability/tracing/open.ts'
import { startServer } from '../server/start-server.ts'
import { packageFacts } from '../version.ts'
import type { Io } from './io.ts'
import { explainListenFailure } from './listen-failure.ts'
import { fileReader, openConfigFile, orExit } from './read-config.ts'
import { inPlainWords } from './store-failure.ts'

export async function runGateway(io: Io, name: string): Promise<void> {
  const untilNpxEnded = onNpxEnded(io.env, () => process.ppid)
  // By default, SIGHUP would end the process. If a SIGHUP arrives during startup, the configuration is reloaded right
  // after startup.
  let reload = () => {
    isReloadRequested = true
  }
  let isReloadRequested = false
  process.on('SIGHUP', () => reload())
  const file = openConfigFile(io, name)
  const { traces, problems } = readTracing(io.env, fileReader(io))
  const { config, warnings, variables } = orExit(file.load(), io.stderr, problems)
  const logger = await openLog(io.stdout, config.server.log, { isShared: config.server.workers > 1 })
  logWarnings(warnings, logger)
  for (const warning of traces?.warnings ?? []) logger.warn({}, warning)
  // With workers, each worker opens its own tracing.
  const ownTraces = config.server.workers > 1 ? undefined : traces
  const tracing = await openTracing(ownTraces, { logger, version: packageFacts().version })
  if (traces !== undefined) logger.info({ endpoint: traces.endpoint }, 'traces are sent')
  let kill = () => {}
  const untilSignal = onEndSignals(() => {
    kill()
    process.exit(1)
  })
  // The log contains the problems of a refused reload as JSON. On a terminal, they are also printed as text.
  const onRefused = (lines: readonly string[]) => {
    if (io.stderr.isTTY) io.stderr.write(lines.map(line => `${line}\n`).join(''))
  }
  const reloadSource = { file, onRefused }
  const server = await startServer({ config, clock: systemClock, logger, tracing, reloadSource }).catch(
    error => {
      throw inPlainWords(explainListenFailure(error, { config, file: name, variables }), config.storage, name)
    },
  )
  kill = () => server.kill()
  reload = () => void server.reload()
  if (isReloadRequested) reload()
  const { address, adminAddress } = server
  const admin = adminAddress === undefined ? '' : `, admin on ${adminAddress}`
  // The lines of `always` are logged at every log level, because operators and supervisors wait for them.
  const always = logger.child({}, { level: 'info' })
  always.info({ address, admin_address: adminAddress }, `ready on ${address}${admin}`)
  logger.info({ signal: await Promise.race([untilSignal, untilNpxEnded]) }, 'draining')
  await server.stop()
  always.info({}, 'stopped')
}

/** Under npm, one Ctrl-C sends two SIGINT, from the terminal and from npm. Within this time, two count as one. */
const sameInterruptMs = 250

/**
 * Handles SIGTERM and SIGINT until the process ends. The handlers stay after the first signal. Otherwise, the second
 * SIGINT of one Ctrl-C under npm would end the process before the drain.
 * @param endNow called at each later signal, except at a SIGINT within `sameInterruptMs` after the first signal
 * @returns the name of the first signal
 */
function onEndSignals(endNow: () => void): Promise<string> {
  return new Promise(resolve => {
    let firstAtMs: number | undefined
    const hear = (signal: string) => {
      if (firstAtMs === undefined) {
        firstAtMs = performance.now()
        resolve(signal)
      } else if (signal === 'SIGTERM' || performance.now() - firstAtMs >= sameInterruptMs) endNow()
    }
    process.on('SIGTERM', hear).on('SIGINT', hear)
  })
}

const parentPollMs = 500

/**
 * Watches for the end of npx. A signal to `npx peage start` ends npx and its shell, but does not reach the gateway.
 * Without npx, the end of the parent process is ignored, because a gateway may outlive the shell that started it.
 * @param parentOf returns the process id of the current parent; the id changes when the parent ends
 * @returns a promise that resolves when npx has ended; without npx, it never resolves
 */
function onNpxEnded(env: Io['env'], parentOf: () => number): Promise<string> {
  return new Promise(resolve => {
    if (env.npm_lifecycle_event !== 'npx') return
    const parent = parentOf()
    const poll = setInterval(() => {
      if (parentOf() === parent) return
      clearInterval(poll)
      resolve('npx ended')
    }, parentPollMs).unref()
  })
}
