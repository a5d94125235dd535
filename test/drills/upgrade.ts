// The previous release and this release run on the same database. The drill replaces the replicas of the previous
// release with replicas of this release. Later, it does the reverse. The database is migrated before or during the
// rollout. No session is lost, and an ended session stays ended.
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { cli } from '../support/processes.ts'
import { noRateLimits } from './accounts.ts'
import { openStage, type ReplicaStage, type Setting } from './replicas.ts'
import { startSessions } from './sessions.ts'
import { startUpstream } from './stage.ts'
import { judgeSideBySide, type Version, type VersionedReplica } from './upgrade-cases.ts'
import { judgePlans, plansSetting } from './upgrade-plans.ts'
import type { Watch } from './watch.ts'

/**
 * The folder with the built version 0.1. To create the folder, run `git worktree add --detach FOLDER TAG`. Then run
 * `npm ci` in it.
 */
const older = process.env.OLDER_PROGRAM ?? ''
const programs: Readonly<Record<Version, string>> = { old: join(older, 'dist/cli.js'), new: cli }

export async function upgrade(watch: Watch): Promise<void> {
  if (older === '')
    throw new Error('OLDER_PROGRAM is not set. Set it to the folder of the built previous release.')
  const upstream = await startUpstream()
  const setting = {
    // Access tokens expire after 3 s, so that clients refresh their tokens in every step.
    settings: `auth: { access_token_ttl: 3s, ${noRateLimits} }\n${plansSetting.settings}`,
    env: plansSetting.env,
    routing: `upstreams: { service: { targets: ['http://127.0.0.1:${upstream.port}'], connections: 512 } }
routes:
  - { path: /public/small, upstream: service }
${plansSetting.routes}`,
  }
  try {
    for (const migratesFirst of [true, false]) {
      const stage = await openStage()
      try {
        await roll(stage, setting, migratesFirst, watch)
      } finally {
        await stage.stop()
      }
    }
  } finally {
    await upstream.stop()
  }
}

async function roll(
  stage: ReplicaStage,
  setting: Setting,
  migratesFirst: boolean,
  { say, expect }: Watch,
): Promise<void> {
  const start = async (version: Version): Promise<VersionedReplica> => ({
    version,
    ...(await stage.start({ ...setting, program: programs[version] })),
  })
  const replicas: [VersionedReplica, VersionedReplica] = [await start('old'), await start('old')]
  /** Replaces one replica as a rollout does. The new replica is ready before the old replica stops. */
  const replace = async (version: Version) => {
    const [ending, staying] = replicas
    const starting = await start(version)
    replicas[0] = staying
    replicas[1] = starting
    // The old replica can complete its requests in flight during this time.
    await sleep(500)
    await ending.stop()
    await sleep(2_000)
  }

  say(migratesFirst ? '`migrate` runs first' : 'the first replica of this version migrates')
  const count = 24
  const { database } = stage
  const sessions = await startSessions(replicas, { count, database, onNewKey: async () => {} })
  await sleep(2_000)
  if (migratesFirst) {
    await stage.migrate(setting)
    await sleep(2_000)
  }
  const steps: [title: string, version: Version][] = [
    ['forward', 'new'],
    ['back', 'old'],
    ['forward again', 'new'],
  ]
  for (const [title, version] of steps) {
    await replace(version)
    if (title !== 'forward again') {
      await judgeSideBySide(replicas, database, title, expect)
      await judgePlans(replicas, database, title, expect)
    }
    await replace(version)
  }
  const { calls, refreshes, logins, wrong, failures } = await sessions.stop()
  expect(
    `${migratesFirst ? 'migrated first' : 'migrated by a replica'}: no request of ${count} clients fails, and no client must log in again`,
    wrong.length === 0 && failures.length === 0 && logins === count,
    `${wrong.length} valid tokens refused, ${failures.length} other failures ${[...new Set(failures)]}, ${logins - count} logins again; ${calls} calls, ${refreshes} refreshes`,
  )
}
