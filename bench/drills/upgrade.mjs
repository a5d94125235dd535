// The release before and this one on one database, in each order of steps and back: no session is lost, none let through.

import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { noRateLimits } from './accounts.mjs'
import { openStage } from './replicas.mjs'
import { startSessions } from './sessions.mjs'
import { startUpstream } from './stage.mjs'
import { judgeSideBySide } from './upgrade-cases.mjs'

/** The folder of a built 0.1: `git worktree add --detach FOLDER TAG`, `npm ci` there. */
const older = process.env.OLDER_PROGRAM ?? ''
const newer = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))

/** @type {import('./main.mjs').Drill} */
export async function upgrade({ say, expect }) {
  if (older === '') throw new Error('this drill needs OLDER_PROGRAM, the folder of the release before, built')
  const programs = { old: join(older, 'dist/cli.js'), new: newer }
  const upstream = await startUpstream()
  const setting = {
    // So short that clients exchange their tokens at every step.
    settings: `auth: { access_token_ttl: 3s, ${noRateLimits} }`,
    routing: `upstreams: { service: { targets: ['http://127.0.0.1:${upstream.port}'], connections: 512 } }
routes:
  - { path: /public/small, upstream: service }`,
  }
  try {
    for (const migratesFirst of [true, false]) {
      const stage = await openStage()
      try {
        const play = await openPlay(stage, setting, programs)
        say(migratesFirst ? 'migrate first' : 'the first replica of this version migrates')
        await roll(stage, play, { setting, migratesFirst, expect })
      } finally {
        await stage.stop()
      }
    }
  } finally {
    await upstream.stop()
  }
}

/** Two replicas of the version before, and what replaces one by another. */
async function openPlay(stage, setting, programs) {
  const start = async version => ({
    version,
    ...(await stage.start({ ...setting, program: programs[version] })),
  })
  const replicas = [await start('old'), await start('old')]
  return {
    replicas,
    /** One by one, as a roll-out does: the new one serves before the one before is told to end. */
    async replace(version) {
      const before = replicas[0]
      replicas.push(await start(version))
      replicas.shift()
      // Requests that were sent to it.
      await sleep(500)
      await before.stop()
      await sleep(2_000)
    },
  }
}

async function roll(stage, { replicas, replace }, { setting, migratesFirst, expect }) {
  const count = 24
  const sessions = await startSessions(replicas, {
    count,
    database: stage.database,
    onNewKey: async () => {},
  })
  await sleep(2_000)
  if (migratesFirst) {
    await stage.migrate(setting)
    await sleep(2_000)
  }
  for (const [title, version] of [
    ['forward', 'new'],
    ['back', 'old'],
    ['forward again', 'new'],
  ]) {
    await replace(version)
    if (title !== 'forward again') await judgeSideBySide(replicas, stage.database, { title, expect })
    await replace(version)
  }
  const { calls, refreshes, logins, wrong, failures } = await sessions.stop()
  expect(
    `${migratesFirst ? 'migrated first' : 'migrated by a replica'}: no request of ${count} clients fails, and nobody has to sign in again`,
    wrong.length === 0 && failures.length === 0 && logins === count,
    `${wrong.length} wrong 401, ${failures.length} other failures ${[...new Set(failures)]}, ${logins - count} signed in again; ${calls} calls, ${refreshes} exchanges`,
  )
}
