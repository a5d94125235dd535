// The benchmark: starts the contenders on loopback, checks them, measures them side by side, prints tables (CONTRACT §9).
import { barsOf, judge } from './bars.mjs'
import { findFault } from './checks.mjs'
import { runAndCleanUp, throwIfInterrupted } from './cleanup.mjs'
import { direct, dispatch, httpProxy } from './contenders/bare.mjs'
import { caddy } from './contenders/caddy.mjs'
import { expressGateway } from './contenders/express-gateway.mjs'
import { gateway, sessionsEndAccess, startGateway, twoWorkers } from './contenders/gateway.mjs'
import { haproxy } from './contenders/haproxy.mjs'
import { manyAddresses } from './contenders/many-addresses.mjs'
import { nginxCached, nginxUncached } from './contenders/nginx.mjs'
import { flags } from './flags.mjs'
import { startProgram } from './processes.mjs'
import { perRequest, summarise } from './report.mjs'
import { machine, writeResults } from './results.mjs'
import { runRounds } from './rounds.mjs'
import { openServices } from './services.mjs'
import { tables } from './tables.mjs'

const ours = 'gateway'
const base = httpProxy.rows[0] ?? ''
const express = expressGateway(flags.mayInstall)

await runAndCleanUp(measure)

async function measure() {
  const services = flags.isEmbedded ? undefined : await openServices()
  const upstream = await startProgram('contenders/serve-upstream.mjs')
  const stage = { services, upstream, gateway: await startGateway({ services, upstream }) }
  const contenders = [
    direct,
    httpProxy,
    dispatch,
    // The one whose tokens the others take is the one that is measured.
    gateway(ours, async () => stage.gateway),
    sessionsEndAccess(ours),
    manyAddresses(ours),
    twoWorkers(ours),
    ...flags.also.map(([name, cli]) => gateway(name, startGateway, cli)),
    nginxUncached,
    nginxCached,
    caddy,
    haproxy,
    express,
  ]
  const { rows, absent, failed } = await assemble(contenders, stage)
  process.stderr.write('warming up\n')
  if (!rows.some(({ name }) => name === base)) throw new Error(`nothing to compare with: ${failed.get(base)}`)
  const outcome = await runRounds(rows, { ...flags, base, onRound })
  for (const [name, fault] of outcome.failures) failed.set(name, fault)
  const measured = rows.filter(({ name }) => !failed.has(name))
  const also = Object.fromEntries(flags.also)
  const results = {
    notes: notesOf(outcome, services, measured),
    settings: { ...flags, isAsked: undefined, also },
    rows: summarise(outcome, measured.map(nameOf), base, flags.perSecond),
    absent: Object.fromEntries(absent),
    failed: Object.fromEntries(failed),
    bars: judge(barsOf(ours, express.rows[0] ?? '', Object.keys(also)), outcome, failed),
  }
  const folder = writeResults(results, base)
  process.stdout.write(`${flags.isJson ? JSON.stringify(results, null, 2) : tables(results)}\n`)
  process.stderr.write(`table, chart and JSON are in ${folder}\n`)
}

/**
 * Starts who can take part, and keeps the rows that answer rightly.
 * @param {readonly import('./contender.mjs').Contender[]} contenders
 * @param {import('./contender.mjs').Stage} stage
 */
async function assemble(contenders, stage) {
  const rows = []
  /** @type {Map<string, string>} */
  const absent = new Map()
  /** @type {Map<string, string>} */
  const failed = new Map()
  for (const contender of contenders) {
    const asked = contender.rows.filter(name => name === base || flags.isAsked(name))
    if (asked.length === 0) continue
    const absence = contender.absence?.(stage)
    if (absence !== undefined) {
      for (const name of asked) absent.set(name, absence)
      continue
    }
    try {
      process.stderr.write(`starting ${asked.join('; ')}\n`)
      for (const row of await contender.start(stage)) {
        if (!asked.includes(row.name)) continue
        const fault = await findFault(row)
        if (fault === undefined) rows.push(row)
        else failed.set(row.name, fault)
      }
    } catch (error) {
      throwIfInterrupted()
      for (const name of asked) failed.set(name, error instanceof Error ? error.message : String(error))
    }
  }
  for (const [name, fault] of failed) process.stderr.write(`failed, not timed: ${name}: ${fault}\n`)
  return { rows, absent, failed }
}

/** @type {Parameters<typeof runRounds>[1]['onRound']} */
function onRound(round, isKept) {
  const cpu = [...round].map(([name, one]) => `${name} ${(perRequest(one) * 1e6).toFixed(1)}`)
  const said = isKept ? 'round' : 'left out, the machine was not ours'
  process.stderr.write(`${said}: µs of CPU a request: ${cpu.join(' · ')}\n`)
}

/**
 * @param {import('./rounds.mjs').Outcome} outcome
 * @param {import('./contender.mjs').Stage['services']} services
 * @param {readonly import('./contender.mjs').Row[]} rows
 */
function notesOf({ rounds, leftOut }, services, rows) {
  const { time, connections, perSecond, rounds: asked } = flags
  const isWhole = rounds.length <= asked
  return [
    `${machine()}. ${rounds.length} rounds of ${time} ms slices, ${connections} connections; latency at ${perSecond} requests a second.`,
    ...(leftOut > 0 && isWhole ? [`${leftOut} rounds are left out: the machine was not ours.`] : []),
    ...(isWhole
      ? []
      : ['**The machine was never ours for long enough: every round is in, judge with care.**']),
    services === undefined
      ? '**No Postgres and Redis: the gateway runs on its embedded database, whose work counts as its own.**'
      : `${services.origin}; their CPU counts for nobody.`,
    ...new Set(rows.flatMap(({ version }) => version ?? [])),
  ].map(line => (line.endsWith('.') || line.endsWith('*') ? line : `${line}.`))
}

/** @param {{ name: string }} row */
function nameOf({ name }) {
  return name
}
