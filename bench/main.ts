// The benchmark starts all contenders on loopback, checks their responses, measures them in turn, and prints tables.
import { runAndCleanUp, throwIfInterrupted } from '../test/support/cleanup.ts'
import { startProgram } from '../test/support/processes.ts'
import { openServices } from '../test/support/stores.ts'
import { chart, light } from './chart.ts'
import { findFault, messageOf } from './checks.ts'
import type { Contender, Row, Stage } from './contender.ts'
import { direct, dispatch, httpProxy, upstreamProgram } from './contenders/bare.ts'
import { caddy, caddyRemembering } from './contenders/caddy.ts'
import { expressGateway } from './contenders/express-gateway.ts'
import { forwardAuth } from './contenders/forward-auth.ts'
import { gateway, sessionsEndAccess, startGateway, twoWorkers } from './contenders/gateway.ts'
import { haproxy } from './contenders/haproxy.ts'
import { keys, scopedRoutes } from './contenders/keys.ts'
import { manyAddresses } from './contenders/many-addresses.ts'
import { nginx, nginxCache, nginxRemembering } from './contenders/nginx.ts'
import { quotas } from './contenders/quotas.ts'
import { flags, isAsked, settings } from './flags.ts'
import { publish } from './publish.ts'
import {
  keepRecording,
  type Recording,
  recordingText,
  rounded,
  thisMachine,
  writeResults,
} from './recording.ts'
import { reportOf } from './report.ts'
import { rateOf, runRounds } from './rounds.ts'
import { base, ours } from './row-names.ts'
import { tables } from './tables.ts'

await runAndCleanUp(measure)

async function measure(): Promise<number> {
  const services = flags.isEmbedded ? undefined : await openServices()
  const upstream = await startProgram(upstreamProgram)
  const usual = await startGateway({ services, upstream }, { routes: scopedRoutes })
  const stage = { services, upstream, gateway: usual }
  const contenders = [
    direct,
    httpProxy,
    dispatch,
    gateway(ours, async () => stage.gateway),
    keys,
    quotas,
    sessionsEndAccess,
    forwardAuth,
    manyAddresses,
    twoWorkers,
    ...flags.also.map(({ build, cli }) => gateway(build, startGateway, cli)),
    nginx,
    nginxRemembering,
    nginxCache,
    caddy,
    caddyRemembering,
    haproxy,
    expressGateway(flags.mayInstall),
  ]
  const recording = rounded(await record(await assemble(contenders, stage), services?.origin))
  const report = reportOf(recording)
  const costs = report.rows.map(({ name, full }) => ({ name, ratio: full.ratio }))
  const folder = writeResults({
    'results.json': recordingText(recording),
    'results.md': `${tables(report)}\n`,
    'chart.svg': chart(
      costs,
      `CPU per request, relative to ${base} (median, quartiles; less is better)`,
      light,
    ),
  })
  process.stdout.write(flags.isJson ? recordingText(recording) : `${tables(report)}\n`)
  tell(`table, chart and JSON were written to ${folder}`)
  if (flags.isRecorded) {
    // `publish` runs first. If the recording lacks a row of the charts, `publish` throws. The file of the previous
    // recording then stays unchanged.
    publish(recording)
    keepRecording(recording)
  }
  return 0
}

async function record({ rows, absent, failed }: Assembled, stores: string | undefined): Promise<Recording> {
  if (!rows.some(({ name }) => name === base))
    throw new Error(`${base} cannot be measured: ${failed.get(base)}`)
  const date = new Date().toISOString().slice(0, 10)
  const { rounds, failures } = await runRounds(rows, { ...settings, base, onProgress: tell })
  return {
    date,
    machine: thisMachine(),
    stores: stores ?? null,
    versions: [...new Set(rows.flatMap(({ version }) => version ?? []))],
    settings,
    builds: flags.also.map(({ build }) => build),
    rows: rows.map(row => ({ name: row.name, rate: rateOf(row, settings.rate) ?? null })),
    rounds,
    absent: Object.fromEntries(absent),
    failed: Object.fromEntries([...failed, ...failures]),
  }
}

interface Assembled {
  readonly rows: readonly Row[]
  /** The reasons why rows cannot run, by row name. */
  readonly absent: ReadonlyMap<string, string>
  /** The errors of the rows that failed, by row name. */
  readonly failed: ReadonlyMap<string, string>
}

/** Starts the contenders that can run, and keeps the rows whose checks pass. */
async function assemble(contenders: readonly Contender[], stage: Stage): Promise<Assembled> {
  const rows: Row[] = []
  const absent = new Map<string, string>()
  const failed = new Map<string, string>()
  for (const contender of contenders) {
    const asked = contender.rows.filter(name => name === base || isAsked(name))
    if (asked.length === 0) continue
    const absence = contender.absence?.(stage)
    if (absence !== undefined) {
      for (const name of asked) absent.set(name, absence)
      continue
    }
    try {
      tell(`starting ${asked.join('; ')}`)
      for (const row of await contender.start(stage)) {
        if (!asked.includes(row.name)) continue
        const fault = await findFault(row)
        if (fault === undefined) rows.push(row)
        else failed.set(row.name, fault)
      }
    } catch (error) {
      throwIfInterrupted()
      for (const name of asked) failed.set(name, messageOf(error))
    }
  }
  for (const [name, reason] of absent) tell(`absent: ${name}: ${reason}`)
  for (const [name, fault] of failed) tell(`failed, not timed: ${name}: ${fault}`)
  return { rows, absent, failed }
}

function tell(text: string): void {
  process.stderr.write(`${text}\n`)
}
