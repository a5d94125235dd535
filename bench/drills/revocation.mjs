// What is taken from a user is gone on every replica within 50 ms; where what the listeners are sent is lost, within 5 s.
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { temporaryFolder } from '../processes.mjs'
import { startDroppingRelay } from './dropping-relay.mjs'
import { startLoad } from './load.mjs'
import { startReplicas } from './replicas.mjs'
import { judge, stallsIn } from './revocation-verdict.mjs'
import { setting } from './settings.mjs'
import { startUpstream } from './stage.mjs'
import { startStallingRelay } from './stalling-relay.mjs'
import { ask, createSubjects, newPro } from './subjects.mjs'

const rounds = setting('REVOCATIONS', 200, 20)

/** @type {import('./main.mjs').Drill} */
export async function revocation(watch) {
  await onStage(watch, undefined, async ({ takeFrom, database, stoodStill }) => {
    judge({ ...watch, stoodStill }, `${rounds} times`, await takeFrom({ rounds, watch: 120 }), 50)
    const terminated = await takeFrom({
      rounds: 10,
      watch: 1_500,
      before: () =>
        database.query(
          `select pg_terminate_backend(pid) from pg_stat_activity
            where application_name = 'peage listen' and datname = current_database()`,
        ),
    })
    judge({ ...watch, stoodStill }, 'every listening backend terminated', terminated, 50)
  })
  // First bytes are held back, then packets are dropped: TCP hears of the one, and of the other nothing.
  await withoutFeed(watch, startStallingRelay, "the listeners' bytes held back")
  await withoutFeed(watch, startDroppingRelay, "the listeners' packets dropped in a network namespace")
}

async function withoutFeed(watch, startRelay, title) {
  let relay
  const throughRelay = async url => {
    relay = await startRelay(url)
    return relay.url
  }
  try {
    await onStage(watch, throughRelay, async ({ takeFrom, stoodStill }) => {
      const dropped = await takeFrom({
        rounds: 3,
        watch: 6_000,
        before: async () => relay.stall(),
        after: async () => {
          relay.flow()
          await sleep(4_000)
        },
      })
      judge({ ...watch, stoodStill }, title, dropped, 5_000)
    })
  } finally {
    relay?.stop()
  }
}

async function onStage({ say, expect }, listenThrough, work) {
  const folder = temporaryFolder()
  const delays = join(folder.path, 'loop')
  const upstream = await startUpstream()
  try {
    const stage = await startReplicas({
      // A key that was revoked is an unknown one, and is asked with very often here.
      settings: 'auth: { rate_limits: { bad_keys: 0 } }',
      routing: `upstreams: { service: { targets: ['http://127.0.0.1:${upstream.port}'], connections_per_client: 128 } }
routes:
  - { path: /public/small, upstream: service, plans: [pro] }`,
      env: {
        NODE_OPTIONS: `--import=${new URL('watch-loop.mjs', import.meta.url).href}`,
        LOOP_DELAYS: delays,
      },
      listenThrough,
    })
    const { database, replicas } = stage
    try {
      const subjects = await createSubjects(replicas[0].port, database)
      const { headers } = await newPro(replicas[0].port, database, 'load')
      await sleep(1_000)
      const loads = replicas.map(({ port }) => startLoad(port, { perSecond: 150, headers }))
      await work({
        database,
        takeFrom: taking => takeEach(subjects, { replicas, ...taking }),
        stoodStill: ({ pids: [pid] }) => stallsIn(`${delays}.${pid}`),
      })
      const results = await Promise.all(loads.map(load => load.stop()))
      const failures = loads.flatMap(load => load.failures)
      const own = Math.max(...results.map(({ ownStall }) => ownStall))
      const p99 = results.map(result => result.p99.toFixed(1)).join(' and ')
      const done = loads.map(load => load.done).join(' and ')
      say(
        `beside ${done} requests of another user, p99 ${p99} ms; the drill itself stood still for ${own.toFixed(0)} ms at most`,
      )
      expect('nobody else is refused', failures.length === 0, `${failures.length} ${[...new Set(failures)]}`)
    } finally {
      await stage.stop()
    }
  } finally {
    await upstream.stop()
    folder.remove()
  }
}

/**
 * Takes from all subjects at once, and asks every replica for each every 10 ms; then gives back.
 * @returns {Promise<Asked[]>} what was answered
 * @typedef {{ subject: string, replica: object, round: number, isOld: boolean, isNew: boolean, sent: bigint, answered: bigint, committed: bigint }} Asked
 */
async function takeEach(subjects, { replicas, rounds, watch, before = nothing, after = nothing }) {
  const all = []
  for (let round = 0; round < rounds; round += 1) {
    await before()
    await Promise.all(
      subjects.map(async subject => {
        await subject.take()
        const committed = process.hrtime.bigint()
        all.push(...(await watchOne(subject, { replicas, round, committed, watch })))
        await subject.giveBack()
      }),
    )
    await after()
    // Remembered again, as it was before.
    for (const subject of subjects) await Promise.all(replicas.map(replica => allowed(replica, subject)))
  }
  return all
}

async function nothing() {}

async function watchOne(subject, { replicas, round, committed, watch }) {
  const asked = []
  while (millisecondsFrom(committed) < watch) {
    for (const replica of replicas) {
      const sent = process.hrtime.bigint()
      asked.push(
        ask(replica.port, subject.headers).then(({ status }) => ({
          subject: subject.name,
          replica,
          round,
          isOld: status === subject.before,
          isNew: status === subject.after,
          sent,
          answered: process.hrtime.bigint(),
          committed,
        })),
      )
    }
    await sleep(10)
  }
  return Promise.all(asked)
}

async function allowed({ port }, { headers, before }) {
  for (let tries = 0; tries < 1_000; tries += 1) {
    if ((await ask(port, headers)).status === before) return
    await sleep(10)
  }
  throw new Error('not let in again within 10 s')
}

function millisecondsFrom(moment) {
  return Number(process.hrtime.bigint() - moment) / 1e6
}
