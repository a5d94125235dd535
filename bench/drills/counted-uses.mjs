// Free uses, counted together, while stores and gateways fail: nobody gets one too many, and each that reached the service is
// in the record.
import { readlinkSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { processTree } from '../costs.mjs'
import { forEach } from '../measure/own-stores.mjs'
import { findPostgres, findProgram } from '../programs.mjs'
import { startPostgres, startRedis } from '../services.mjs'
import { startCountingService } from './counting-service.mjs'
import { openStage } from './replicas.mjs'
import { random, setting } from './settings.mjs'
import { takeUse, takeUses } from './take-uses.mjs'
import { createUsers } from './users.mjs'

const users = 100
/** Uses of a day. */
const limit = 200
/** What a user has left of them in a race. */
const left = 3
const racers = 9
/** And when a gateway is killed. */
const fewLeft = 20
const rounds = setting('COUNTED_RACES', 10_000, 500) / users
const kills = setting('COUNTED_KILLS', 100, 5)

/** @type {import('./main.mjs').Drill} */
export async function countedUses(watch) {
  const [bin, redisServer] = [findPostgres(), findProgram('redis-server')]
  if (bin === undefined || redisServer === undefined)
    throw new Error('this drill starts a Postgres and a Redis')
  const postgres = await startPostgres(bin)
  const redis = await startRedis(redisServer)
  const service = await startCountingService()
  const stage = await openStage({ postgres: postgres.url, redis: redis.url })
  const raw = new Redis(redis.url)
  try {
    await stage.migrate()
    const { keys, tokens } = await createUsers(stage, users, 'free')
    const start = () =>
      stage.start({
        settings: `auth: { keys: [${JSON.stringify(keys)}] }\nlimits: { free_daily: ${limit} }`,
        routing: `upstreams: { service: { targets: ['http://127.0.0.1:${service.port}'], connections_per_client: 128 } }
routes:
  - { path: /daily/*, upstream: service, free_daily: true }`,
      })
    const replicas = [await start(), await start(), await start()]
    const play = { ...watch, stage, service, tokens, replicas, start, postgres, raw }
    await race(play)
    for (const [name, fault] of Object.entries(faults)) await underFault(play, name, fault)
    await killGateways(play)
  } finally {
    raw.disconnect()
    // A Postgres that is gone must not hide why.
    await stage.stop().catch(error => watch.say(String(error)))
    service.close()
  }
}

/** All of a user's uses at the same moment, three at each replica. */
async function race({ expect, stage, service, tokens, replicas }) {
  let [more, fewer] = [0, 0]
  for (let round = 0; round < rounds; round += 1) {
    await giveBack(stage, service, left)
    await forEach([...tokens.keys()], 16, async user => {
      const ports = Array.from({ length: racers }, (_, at) => replicas[at % 3].port)
      await Promise.all(ports.map(port => takeUse(port, tokens[user])))
    })
    for (const { forwarded, counted } of await compare(stage, service, left)) {
      if (forwarded > left || counted > left) more += 1
      if (forwarded < left || counted < left) fewer += 1
    }
  }
  const title = `of ${racers} uses at once over three replicas exactly the ${left} that are left pass, ${rounds * users} times`
  expect(title, more + fewer === 0, `${more} with more, ${fewer} with fewer`)
}

const faults = {
  async 'Postgres killed'(play) {
    // The postmaster first, or it would replace its backends; one that is left would keep the new one from starting.
    for (const pid of processTree(play.postgres.pid)) if (isThere(pid)) process.kill(pid, 'SIGKILL')
    await sleep(1_000)
    play.postgres.pid = await play.postgres.start()
  },
  async 'Postgres stopped for 3 s'({ postgres }) {
    const pids = processTree(postgres.pid)
    for (const pid of pids) process.kill(pid, 'SIGSTOP')
    await sleep(3_000)
    for (const pid of pids) if (isThere(pid)) process.kill(pid, 'SIGCONT')
  },
  async 'Redis wiped, ten times'({ raw }) {
    for (let time = 0; time < 10; time += 1) {
      await raw.flushall()
      await sleep(100)
    }
  },
  async 'Redis put back to an older copy, five times'({ raw }) {
    const names = await raw.keys('peage:usage:*')
    const older = await raw.mget(names)
    for (let time = 0; time < 5; time += 1) {
      await sleep(200)
      await raw.mset(Object.fromEntries(names.map((name, at) => [name, older[at] ?? '0'])))
    }
  },
}

async function underFault(play, name, fault) {
  const { stage, service, replicas, tokens, raw } = play
  await raw.flushall()
  await giveBack(stage, service, limit)
  const load = takeUses(replicas, tokens, limit)
  await sleep(500)
  await fault(play)
  const { failed } = await load.whenSpent()
  judge(play, name, await compare(stage, service, limit), failed)
}

/** In the middle of counted uses, of which each user has a few left. */
async function killGateways(play) {
  const { stage, service, replicas, tokens, start } = play
  const all = []
  let failed = 0
  for (let kill = 0; kill < kills; kill += 1) {
    await giveBack(stage, service, fewLeft)
    const load = takeUses(replicas, tokens, fewLeft)
    await sleep(20 + random() * 280)
    const at = kill % replicas.length
    process.kill(replicas[at].pids[0], 'SIGKILL')
    replicas[at] = await start()
    failed += (await load.whenSpent()).failed
    all.push(...(await compare(stage, service, fewLeft)))
  }
  judge(play, `a gateway killed with -9, ${kills} times`, all, failed)
}

function judge({ expect }, name, compared, failed) {
  const sum = key => compared.reduce((total, one) => total + one[key], 0)
  const second = compared.filter(({ forwarded, left }) => forwarded > left).length
  const lost = compared.filter(({ forwarded, counted }) => forwarded > counted).length
  const open = compared.filter(({ counted, left }) => counted !== left).length
  expect(
    `${name}: nobody gets a use too many, and all are in the record`,
    second + lost + open === 0,
    `${sum('forwarded')} passed, ${sum('counted')} in the record, ${failed} failed; ${second} users with too many, ` +
      `${lost} with uses that are not in the record, ${open} not at the limit in the end`,
  )
}

/** Gives every user so many uses, and forgets what the service has seen. */
async function giveBack({ database }, service, uses) {
  // What a killed gateway or client asked for may still be on its way.
  await sleep(100)
  await database.query(
    "update users set daily_usage = $1, last_usage_date = (now() at time zone 'utc')::date",
    [limit - uses],
  )
  // Until every replica has heard of it: a spent day is remembered.
  await sleep(250)
  service.seen.clear()
}

/** @returns {Promise<{ left: number, forwarded: number, counted: number }[]>} of each user, what was there to use and what was used */
async function compare({ database }, { seen }, left) {
  const { rows } = await database.query('select id::int, daily_usage from users order by id')
  return rows.map(({ id, daily_usage }) => ({
    left,
    forwarded: seen.get(String(id)) ?? 0,
    counted: daily_usage - (limit - left),
  }))
}

function isThere(pid) {
  try {
    return readlinkSync(`/proc/${pid}/exe`) !== ''
  } catch {
    return false
  }
}
