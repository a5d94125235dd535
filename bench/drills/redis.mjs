// Redis is killed, stands still, is wiped, older, read-only, moved, or fails over, under free and paying users at two replicas.
import { setTimeout as sleep } from 'node:timers/promises'
import { startCountingService } from './counting-service.mjs'
import { startCluster, startNode, startWatched } from './redis-nodes.mjs'
import { limit, startWork } from './redis-work.mjs'
import { startRelay } from './relay.mjs'
import { openStage } from './replicas.mjs'
import { setting } from './settings.mjs'
import { createUsers } from './users.mjs'

const outageMs = setting('REDIS_SECONDS', 5, 2) * 1_000
/** Milliseconds: until a free user is answered, until Redis counts again, and for how long it must then go on counting. */
const soon = 1_000
const recovery = 5_000
const steady = 1_000
/** More than are asked for in all faults of one set-up. */
const freeUsers = setting('REDIS_USERS', 6_000, 3_000)
const payingUsers = 100

/** @type {import('./main.mjs').Drill} */
export async function redis(watch) {
  for (const setUp of [alone, behindAnAddress, watchedBySentinels, asCluster]) {
    const { redis, faults, stop } = await setUp()
    try {
      await underFaults(watch, redis, faults)
    } finally {
      await stop()
    }
  }
  watch.say(`each outage lasted ${outageMs / 1_000} s, or until another was named`)
}

/** @typedef {{ redis: string | object, faults: Record<string, () => Promise<unknown>>, stop: () => Promise<void> }} SetUp each fault ends when Redis is back */

/** @returns {Promise<SetUp>} */
async function alone() {
  const [node, other] = [await startNode(), await startNode()]
  return {
    redis: `redis://${node.host}`,
    faults: {
      async 'killed with -9, back empty'() {
        await node.kill()
        await sleep(outageMs)
        await node.startAgain()
      },
      async 'stopped (SIGSTOP)'() {
        node.pause()
        await sleep(outageMs)
        node.resume()
      },
      async 'wiped (FLUSHALL), ten times'() {
        for (let time = 0; time < 10; time += 1) {
          await node.raw.flushall()
          await sleep(outageMs / 10)
        }
      },
      async 'killed, back with an older copy'() {
        await node.raw.save()
        await sleep(2_000)
        await node.kill()
        await sleep(outageMs)
        await node.startAgain()
      },
      async 'a read-only replica of another'() {
        await node.follow(other)
        await sleep(outageMs)
        await node.lead()
      },
    },
    async stop() {
      await other.stop()
      await node.stop()
    },
  }
}

/** Where somebody else fails over: the address leads to the promoted replica, and open connections stay where they are. */
async function behindAnAddress() {
  const [first, second] = [await startNode(), await startNode()]
  await second.follow(first)
  const relay = await startRelay('serve-moving-relay.mjs', `redis://${first.host}`)
  return {
    redis: relay.url,
    faults: {
      async 'its address moves to a promoted replica, and the old one stays on as replica of that'() {
        await second.lead()
        await first.follow(second)
        await sleep(outageMs)
        relay.child.send(second.port)
      },
      async 'killed with -9, its address moves to a promoted replica'() {
        await second.kill()
        await first.lead()
        await sleep(outageMs)
        relay.child.send(first.port)
      },
    },
    async stop() {
      relay.stop()
      await first.stop()
      await second.stop()
    },
  }
}

/** @returns {Promise<SetUp>} */
async function watchedBySentinels() {
  const watched = await startWatched()
  return {
    redis: watched.redis,
    faults: {
      async 'Sentinel: the primary killed with -9'() {
        const primary = await watched.named()
        await primary.kill()
        await watched.failedOver(primary)
        // As its replica, which the Sentinels see to.
        await primary.startAgain()
      },
      async 'Sentinel: the primary stopped (SIGSTOP)'() {
        const primary = await watched.named()
        primary.pause()
        await watched.failedOver(primary)
        setTimeout(() => primary.resume(), 2_000)
      },
    },
    stop: watched.stop,
  }
}

/** @returns {Promise<SetUp>} */
async function asCluster() {
  const cluster = await startCluster()
  return {
    redis: cluster.redis,
    faults: {
      async 'Cluster: a node killed that has a replica'() {
        await cluster.first.kill()
        await cluster.replaced()
        await cluster.whole()
        await cluster.first.startAgain()
      },
      async 'Cluster: a node killed that has none, back empty'() {
        await cluster.second.kill()
        await sleep(outageMs)
        await cluster.second.startAgain()
        await cluster.whole()
      },
    },
    stop: cluster.stop,
  }
}

async function underFaults({ say, expect }, redis, faults) {
  const service = await startCountingService()
  const stage = await openStage({ redis })
  let work
  try {
    await stage.migrate()
    const { keys, tokens } = await createUsers(stage, freeUsers + payingUsers, 'free')
    await stage.database.query("update users set plan = 'pro' where id > $1", [freeUsers])
    const start = () =>
      stage.start({
        settings: `auth: { keys: [${JSON.stringify(keys)}] }\nlimits: { free_daily: ${limit} }`,
        routing: `upstreams: { service: { targets: ['http://127.0.0.1:${service.port}'], connections_per_client: 128 } }
routes:
  - { path: /free/*, upstream: service, free_daily: true }
  - { path: /paying/*, upstream: service, plans: [pro], rate_limit: 1000000/1m }`,
      })
    const replicas = [await start(), await start()]
    work = startWork(replicas, { free: tokens.slice(0, freeUsers), paying: tokens.slice(freeUsers) })
    for (const [fault, play] of Object.entries(faults)) {
      await sleep(steady)
      await normalAgain(replicas)
      const before = slowestOf(work.take().filter(({ kind }) => kind === 'free'))
      await play()
      const normalMs = await normalAgain(replicas)
      await sleep(steady)
      judge(expect, fault, { normalMs, before, answers: work.take(), ...(await compare(stage, service)) })
      if (!work.isGoing()) throw new Error('all free users are spent: more are needed (REDIS_USERS)')
    }
    say(`the drill itself stood still for ${work.ownStall().toFixed(0)} ms at most`)
  } finally {
    await work?.stop()
    await stage.stop()
    service.close()
  }
}

function judge(expect, fault, { normalMs, before, answers, second, lost }) {
  const [free, paying] = ['free', 'paying'].map(kind => answers.filter(answer => answer.kind === kind))
  expect(
    `${fault}: nobody gets a second use`,
    second + lost === 0,
    `${second} users with too many, ${lost} with uses that are not in the record`,
  )
  expect(
    `${fault}: no request of a paying user fails`,
    paying.length > 0 && paying.every(({ status }) => status === 200),
    counted(paying),
  )
  const slowest = slowestOf(free)
  expect(
    `${fault}: free users are answered within 1 s`,
    free.length > 0 && slowest < soon && free.every(({ status }) => status === 200 || status === 429),
    `${slowest.toFixed(0)} ms at most, ${before.toFixed(0)} ms before; ${counted(free)}`,
  )
  expect(
    `${fault}: Redis counts again within 5 s of its return`,
    normalMs < recovery,
    `${(normalMs / 1_000).toFixed(1)} s`,
  )
}

const slowestOf = answers => Math.max(0, ...answers.map(({ tookMs }) => tookMs))

function counted(answers) {
  const counts = new Map()
  for (const { status } of answers) counts.set(status, (counts.get(status) ?? 0) + 1)
  return [...counts].map(([status, count]) => `${status}: ${count}`).join(', ')
}

/**
 * Until no replica counts a use without Redis any more, and both are ready.
 * @returns {Promise<number>} milliseconds until the last that did
 */
async function normalAgain(replicas) {
  const begun = performance.now()
  let last = begun
  let known = await fallbacks(replicas)
  while (performance.now() - last < steady && performance.now() - begun < 4 * recovery) {
    await sleep(50)
    const now = await fallbacks(replicas)
    if (now !== known) last = performance.now()
    known = now
  }
  return last - begun
}

/** Uses that Postgres counted alone; not a number while a replica does not call itself well. */
async function fallbacks(replicas) {
  const counts = replicas.map(async ({ admin }) => {
    const { status } = await (await fetch(`http://127.0.0.1:${admin}/readyz`)).json()
    const metrics = await (await fetch(`http://127.0.0.1:${admin}/metrics`)).text()
    const [, count] = /^peage_daily_usage_fallback_total(?:\{.*\})? (\d+)/m.exec(metrics) ?? []
    return status === 'ok' ? Number(count) : Number.NaN
  })
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
}

/** What each free user was given so far. Of what is on its way the record knows first. */
async function compare({ database }, { seen }) {
  const forwarded = new Map(seen)
  const { rows } = await database.query('select id::int, daily_usage from users where id <= $1', [freeUsers])
  const given = rows.map(row => ({ ...row, forwarded: forwarded.get(String(row.id)) ?? 0 }))
  return {
    second: given.filter(one => one.forwarded > limit || one.daily_usage > limit).length,
    lost: given.filter(one => one.forwarded > one.daily_usage).length,
  }
}
