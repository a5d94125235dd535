// The drills run the built program under loads and faults. A drill takes too long to be one of the tests. If the
// program misses a requirement, the exit status is 1.
import { runAndCleanUp } from '../support/cleanup.ts'
import { accountRaces } from './account-races.ts'
import { cardinality } from './cardinality.ts'
import { coldStart } from './cold-start.ts'
import { connectionAge } from './connection-age.ts'
import { consoleOpen } from './console.ts'
import { countedUses } from './counted-uses.ts'
import { crowd } from './crowd.ts'
import { drain } from './drain.ts'
import { embedded } from './embedded.ts'
import { events } from './events.ts'
import { failover } from './failover.ts'
import { floods } from './floods.ts'
import { killsAtRandom } from './kills.ts'
import { largeFiles } from './large-files.ts'
import { logout } from './logout.ts'
import { mails } from './mails.ts'
import { midnightAndClocks } from './midnight.ts'
import { migrationLoad } from './migration-load.ts'
import { migrations } from './migrations.ts'
import { names } from './names.ts'
import { postgres } from './postgres.ts'
import { quotas } from './quotas.ts'
import { receivers } from './receivers.ts'
import { redis } from './redis.ts'
import { reload } from './reload.ts'
import { revocation } from './revocation.ts'
import { rotation } from './rotation.ts'
import * as settings from './settings.ts'
import { shares } from './shares.ts'
import { slowReader } from './slow-reader.ts'
import { soak } from './soak.ts'
import { staging } from './staging.ts'
import { transfer } from './transfer.ts'
import { upgrade } from './upgrade.ts'
import { upstreamFaults } from './upstream-faults.ts'
import type { Drill, Watch } from './watch.ts'
import { webhooks } from './webhooks.ts'

interface Entry {
  run: Drill
  /** If the command line has `--short` and names no drill, only the drills with `inShort` run. */
  inShort?: boolean
  /**
   * The environment variable that the drill needs. Without this variable, the drill runs only if the command line names
   * the drill.
   */
  needs?: string
}

const drills: Record<string, Entry> = {
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
  quotas: { run: quotas },
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
  process.stderr.write(
    `unknown drill: ${unknown.join(', ')}. Choose from ${Object.keys(drills).join(', ')}.\n`,
  )
  process.exit(2)
}
if (settings.isList) {
  for (const [name, { inShort }] of Object.entries(drills))
    process.stdout.write(`${name}${inShort ? ' (also in --short)' : ''}\n`)
  process.exit(0)
}

// If the run is interrupted, `runAndCleanUp` also stops all processes that the drills have started.
await runAndCleanUp(async () => {
  const results: { name: string; bar: string; isMet: boolean; measured: string }[] = []
  for (const [name, { run, inShort = false, needs }] of Object.entries(drills)) {
    const canRun = needs === undefined || needs in process.env
    const isWanted =
      settings.names.length > 0 ? settings.names.includes(name) : canRun && (inShort || !settings.isShort)
    if (!isWanted) continue
    const begun = performance.now()
    process.stdout.write(`\n${name}\n`)

    const expect: Watch['expect'] = (bar, isMet, measured) => {
      results.push({ name, bar, isMet, measured })
      process.stdout.write(`  ${isMet ? 'ok    ' : 'MISSED'}  ${bar}: ${measured}\n`)
    }
    try {
      await run({ say: text => process.stdout.write(`          ${text}\n`), expect })
    } catch (error) {
      expect(
        'the drill runs to its end',
        false,
        error instanceof Error ? (error.stack ?? error.message) : String(error),
      )
    }
    process.stdout.write(`          duration: ${((performance.now() - begun) / 1_000).toFixed(0)} s\n`)
  }

  process.stdout.write(`\n| drill | requirement | measured | result |\n| --- | --- | --- | --- |\n`)
  for (const { name, bar, isMet, measured } of results)
    process.stdout.write(`| ${name} | ${bar} | ${measured.split('\n')[0]} | ${isMet ? 'met' : 'MISSED'} |\n`)
  const missed = results.filter(({ isMet }) => !isMet).length
  process.stdout.write(
    `\nseed ${settings.seed}${settings.isShort ? ', short' : ''}; ${missed === 0 ? 'all requirements are met' : `${missed} requirements are missed`}\n`,
  )
  return missed === 0 ? 0 : 1
})
