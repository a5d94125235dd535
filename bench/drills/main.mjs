// The drills: the built program under loads and faults that a test suite has no time for. Exits 1 when a bar is missed.
import { runAndCleanUp } from '../cleanup.mjs'
import { accountRaces } from './account-races.mjs'
import { cardinality } from './cardinality.mjs'
import { coldStart } from './cold-start.mjs'
import { connectionAge } from './connection-age.mjs'
import { consoleOpen } from './console.mjs'
import { countedUses } from './counted-uses.mjs'
import { crowd } from './crowd.mjs'
import { drain } from './drain.mjs'
import { embedded } from './embedded.mjs'
import { events } from './events.mjs'
import { failover } from './failover.mjs'
import { floods } from './floods.mjs'
import { killsAtRandom } from './kills.mjs'
import { largeFiles } from './large-files.mjs'
import { logout } from './logout.mjs'
import { mails } from './mails.mjs'
import { midnightAndClocks } from './midnight.mjs'
import { migrationLoad } from './migration-load.mjs'
import { migrations } from './migrations.mjs'
import { names } from './names.mjs'
import { postgres } from './postgres.mjs'
import { receivers } from './receivers.mjs'
import { redis } from './redis.mjs'
import { reload } from './reload.mjs'
import { revocation } from './revocation.mjs'
import { rotation } from './rotation.mjs'
import * as settings from './settings.mjs'
import { shares } from './shares.mjs'
import { slowReader } from './slow-reader.mjs'
import { soak } from './soak.mjs'
import { staging } from './staging.mjs'
import { transfer } from './transfer.mjs'
import { upgrade } from './upgrade.mjs'
import { upstreamFaults } from './upstream-faults.mjs'
import { webhooks } from './webhooks.mjs'

/**
 * @typedef {object} Watch
 * @property {(text: string) => void} say
 * @property {(bar: string, isMet: boolean, measured: string) => void} expect
 * @typedef {(watch: Watch) => Promise<void>} Drill
 */

/** Those with `inShort` are what `--short` runs where none is named. `needs`: an environment variable. @type {Record<string, { run: Drill, inShort?: boolean, needs?: string }>} */
const drills = {
  transfer: { run: transfer },
  'slow-reader': { run: slowReader },
  events: { run: events },
  crowd: { run: crowd },
  floods: { run: floods },
  failover: { run: failover, inShort: true },
  'connection-age': { run: connectionAge },
  names: { run: names },
  shares: { run: shares },
  'upstream-faults': { run: upstreamFaults },
  postgres: { run: postgres },
  redis: { run: redis },
  embedded: { run: embedded },
  migrations: { run: migrations },
  drain: { run: drain },
  kills: { run: killsAtRandom, inShort: true },
  soak: { run: soak },
  console: { run: consoleOpen },
  webhooks: { run: webhooks },
  receivers: { run: receivers },
  mails: { run: mails },
  revocation: { run: revocation },
  logout: { run: logout },
  accounts: { run: accountRaces },
  upgrade: { run: upgrade, needs: 'OLDER_PROGRAM' },
  staging: { run: staging, needs: 'STAGING_GATEWAYS' },
  'counted-uses': { run: countedUses },
  'migration-load': { run: migrationLoad, needs: 'OLDER_PROGRAM' },
  midnight: { run: midnightAndClocks, inShort: true },
  rotation: { run: rotation },
  reload: { run: reload },
  'large-files': { run: largeFiles },
  'cold-start': { run: coldStart },
  cardinality: { run: cardinality },
}

const unknown = settings.names.filter(name => !(name in drills))
if (unknown.length > 0) {
  process.stderr.write(`no drill ${unknown.join(', ')}; there are ${Object.keys(drills).join(', ')}\n`)
  process.exit(2)
}
if (settings.isList) {
  for (const [name, { inShort }] of Object.entries(drills))
    process.stdout.write(`${name}${inShort ? ' (also in --short)' : ''}\n`)
  process.exit(0)
}

// What the drills have started ends with them, also where they are interrupted.
await runAndCleanUp(async () => {
  /** @type {{ name: string, bar: string, isMet: boolean, measured: string }[]} */
  const results = []
  for (const [name, { run, inShort = false, needs }] of Object.entries(drills)) {
    // What needs more than this checkout runs where that is named, or where the drill itself is.
    const isThere = needs === undefined || needs in process.env
    const isWanted =
      settings.names.length > 0 ? settings.names.includes(name) : isThere && (inShort || !settings.isShort)
    if (!isWanted) continue
    const begun = performance.now()
    process.stdout.write(`\n${name}\n`)
    /** @type {Watch['expect']} */
    const expect = (bar, isMet, measured) => {
      results.push({ name, bar, isMet, measured })
      process.stdout.write(`  ${isMet ? 'ok    ' : 'MISSED'}  ${bar}: ${measured}\n`)
    }
    try {
      await run({ say: text => process.stdout.write(`          ${text}\n`), expect })
    } catch (error) {
      expect(
        'runs to its end',
        false,
        error instanceof Error ? (error.stack ?? error.message) : String(error),
      )
    }
    process.stdout.write(`          took ${((performance.now() - begun) / 1_000).toFixed(0)} s\n`)
  }

  process.stdout.write(`\n| drill | bar | measured | |\n| --- | --- | --- | --- |\n`)
  for (const { name, bar, isMet, measured } of results)
    process.stdout.write(`| ${name} | ${bar} | ${measured.split('\n')[0]} | ${isMet ? 'met' : 'MISSED'} |\n`)
  const missed = results.filter(({ isMet }) => !isMet).length
  process.stdout.write(
    `\nseed ${settings.seed}${settings.isShort ? ', short' : ''}; ${missed === 0 ? 'every bar is met' : `${missed} missed`}\n`,
  )
  return missed === 0 ? 0 : 1
})
