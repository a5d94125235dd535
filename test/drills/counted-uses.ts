// Gateways count the uses of free users in batches while stores and gateways fail. No user gets more uses than the
// limit, and every use that reached the service is recorded.
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { forEach } from '../support/for-each.ts'
import type { Server } from '../support/servers.ts'
import { startOwnPostgres, startOwnRedis } from '../support/stores.ts'
import { type CountingService, startCountingService } from './counting-service.ts'
import { openStage, type Replica, type ReplicaStage } from './replicas.ts'
import { random, setting } from './settings.ts'
import { takeUse, takeUses } from './take-uses.ts'
import { createUsers } from './users.ts'
import type { Watch } from './watch.ts'

const users = 100
/** The daily limit. */
const limit = 200
/** The number of uses that each user has left in a race. */
const left = 3
const racers = 9
/** The number of uses that each user has left before a gateway is killed. */
const fewLeft = 20
const rounds = setting('COUNTED_RACES', 10_000, 500) / users
const kills = setting('COUNTED_KILLS', 100, 5)

interface Play extends Watch {
  readonly stage: ReplicaStage
  readonly service: CountingService
  readonly tokens: readonly string[]
  readonly replicas: Replica[]
  start(): Promise<Replica>
  readonly postgres: Server
  readonly raw: Redis
}

export async function countedUses(watch: Watch): Promise<void> {
  const [postgres, redis] = [await startOwnPostgres(), await startOwnRedis()]
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
    // An error that is thrown here would hide an earlier error, for example that Postgres has ended. So the drill only
    // prints this error.
    await stage.stop().catch(error => watch.say(String(error)))
    service.close()
  }
}

/** In each round, every user sends `racers` requests at once. Each replica gets a third of them. */
async function race({ expect, stage, service, tokens, replicas }: Play): Promise<void> {
  let [more, fewer] = [0, 0]
  for (let round = 0; round < rounds; round += 1) {
    await giveBack(stage, service, left)
    await forEach(tokens, 16, token =>
      Promise.all(
        Array.from({ length: racers }, (_, at) => takeUse(replicas[at % replicas.length]?.port ?? 0, token)),
      ),
    )
    for (const { forwarded, counted } of await compare(stage, service, left)) {
      if (forwarded > left || counted > left) more += 1
      if (forwarded < left || counted < left) fewer += 1
    }
  }
  const title = `exactly ${left} of ${racers} concurrent uses at three replicas pass if ${left} are left, ${rounds * users} times`
  expect(title, more + fewer === 0, `${more} times more, ${fewer} times fewer`)
}

const faults: Readonly<Record<string, (play: Play) => Promise<void>>> = {
  async 'Postgres killed'({ postgres }) {
    await postgres.kill()
    await sleep(1_000)
    await postgres.restart()
  },
  async 'Postgres paused for 3 s'({ postgres }) {
    postgres.pause()
    await sleep(3_000)
    postgres.resume()
  },
  async 'Redis wiped, ten times'({ raw }) {
    for (let time = 0; time < 10; time += 1) {
      await raw.flushall()
      await sleep(100)
    }
  },
  async 'Redis restored to an older copy, five times'({ raw }) {
    const names = await raw.keys('peage:usage:*')
    const older = await raw.mget(names)
    for (let time = 0; time < 5; time += 1) {
      await sleep(200)
      await raw.mset(Object.fromEntries(names.map((name, at) => [name, older[at] ?? '0'])))
    }
  },
}

async function underFault(play: Play, name: string, fault: (play: Play) => Promise<void>): Promise<void> {
  const { stage, service, replicas, tokens, raw } = play
  await raw.flushall()
  await giveBack(stage, service, limit)
  const load = takeUses(replicas, tokens, limit)
  await sleep(500)
  await fault(play)
  const { failed } = await load.whenSpent()
  judge(play, name, await compare(stage, service, limit), failed)
}

/** Kills a gateway while uses are counted and each user has a few uses left. Repeats this for all gateways in turn. */
async function killGateways(play: Play): Promise<void> {
  const { stage, service, replicas, tokens, start } = play
  const all: Use[] = []
  let failed = 0
  for (let kill = 0; kill < kills; kill += 1) {
    await giveBack(stage, service, fewLeft)
    const load = takeUses(replicas, tokens, fewLeft)
    await sleep(20 + random() * 280)
    const at = kill % replicas.length
    const killed = replicas[at]
    if (killed !== undefined) process.kill(killed.pid, 'SIGKILL')
    replicas[at] = await start()
    failed += (await load.whenSpent()).failed
    all.push(...(await compare(stage, service, fewLeft)))
  }
  judge(play, `gateway killed with SIGKILL, ${kills} times`, all, failed)
}

/** The uses of one user. */
interface Use {
  /** The number of uses that the user had left at the start. */
  readonly left: number
  /** The number of uses that reached the service. */
  readonly forwarded: number
  /** The number of uses that the database recorded. */
  readonly counted: number
}

function judge({ expect }: Watch, name: string, compared: readonly Use[], failed: number): void {
  const sum = (key: keyof Use) => compared.reduce((total, one) => total + one[key], 0)
  const second = compared.filter(({ forwarded, left }) => forwarded > left).length
  const lost = compared.filter(({ forwarded, counted }) => forwarded > counted).length
  const open = compared.filter(({ counted, left }) => counted !== left).length
  expect(
    `${name}: no user gets more uses than the limit, and all uses are recorded`,
    second + lost + open === 0,
    `${sum('forwarded')} passed, ${sum('counted')} recorded, ${failed} failed; ${second} users with too many uses, ` +
      `${lost} with unrecorded uses, ${open} below the limit at the end`,
  )
}

/** Sets the recorded uses so that every user has `uses` uses left. Also resets the counts of the service. */
async function giveBack({ database }: ReplicaStage, service: CountingService, uses: number): Promise<void> {
  // Requests to a killed gateway may still be in flight. This pause waits until they have ended.
  await sleep(100)
  await database.query(
    "update users set daily_usage = $1, last_usage_date = (now() at time zone 'utc')::date",
    [limit - uses],
  )
  // A replica caches which users have no uses left. This pause waits until every replica has received the reset.
  await sleep(250)
  service.seen.clear()
}

async function compare({ database }: ReplicaStage, { seen }: CountingService, left: number): Promise<Use[]> {
  const { rows } = await database.query<{ id: number; daily_usage: number }>(
    'select id::int, daily_usage from users order by id',
  )
  return rows.map(({ id, daily_usage }) => ({
    left,
    forwarded: seen.get(String(id)) ?? 0,
    counted: daily_usage - (limit - left),
  }))
}
