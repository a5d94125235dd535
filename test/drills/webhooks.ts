// Some receivers of alerts hang, fail or are absent, and a replica is killed. Healthy receivers get all alerts in time.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Pool } from 'pg'
import { first as certificate } from '../support/certificates.ts'
import { absent, type Emitted, kindOf, receivers } from './alert-kinds.ts'
import { judgeDeliveries, judgeReceipts } from './alert-verdict.ts'
import { createUsers, type EmitAnswer, emit, newSecret, type Webhook } from './alerts.ts'
import { type Replica, startReplicas } from './replicas.ts'
import type { Receipt } from './serve-receivers.ts'
import type { Watch } from './watch.ts'

const perSecond = 50
const alerts = 3_000
/** The number of users who get the same alert. */
const many = 100_000

export async function webhooks(watch: Watch): Promise<void> {
  await alertEach(watch)
  await alertEverybody(watch)
}

async function alertEach(watch: Watch): Promise<void> {
  const stage = await startReplicas({
    settings: 'webhooks: { allow_private_networks: true }',
    env: { NODE_EXTRA_CA_CERTS: certificate.files.cert },
  })
  const child = fork(fileURLToPath(new URL('./serve-receivers.js', import.meta.url)), {
    serialization: 'advanced',
  })
  try {
    const users = await createUsers(stage.database, await startReceivers(child))
    const [first] = stage.replicas
    const load = startEmitting(users, stage.replicas)
    await sleep((alerts / perSecond / 2) * 1_000)
    process.kill(first.pid, 'SIGKILL')
    const killed = process.hrtime.bigint()
    load.without(first)
    const healthy = users.filter((_, index) => kindOf(index) === 'up')
    const leased = await leasedByTheDead(stage.database, healthy)
    const emitted = await load.done
    await settled(stage.database, healthy)
    child.send('receipts')
    const [receipts] = (await once(child, 'message')) as [Receipt[]]
    judgeReceipts(watch, { emitted, receipts, leased, killed })
    await judgeDeliveries(watch, stage.database, users, emitted)
  } finally {
    child.kill('SIGKILL')
    await stage.stop()
  }
}

async function startReceivers(child: ChildProcess): Promise<Webhook[]> {
  const all = Array.from({ length: receivers + absent }, (_, index) => ({
    kind: kindOf(index),
    secret: newSecret(),
  }))
  child.send(all.slice(0, receivers))
  const [ports] = (await once(child, 'message')) as [number[]]
  return all.map(({ secret }, index) => {
    const receiver = index < receivers ? `127.0.0.1:${ports[index]}` : `127.0.1.${index - receivers}:1`
    return { url: `https://${receiver}/alerts`, receiver, secret }
  })
}

interface Emitting {
  /** Stops sending alerts to `replica`. The other replicas still get alerts. */
  without(replica: Replica): void
  readonly done: Promise<Emitted[]>
}

interface Planned {
  /** The time at which the alert is sent, in milliseconds after the start. */
  readonly at: number
  /** The index of the receiver. */
  readonly index: number
  /** A number that determines to which replica the drill sends the alert. */
  readonly turn: number
}

function startEmitting(users: readonly number[], replicas: readonly Replica[]): Emitting {
  const alive = [...replicas]
  const every = 1_000 / perSecond
  // The alerts go to the receivers in turn. In each round, a receiver gets its alert through another replica than in
  // the previous round. In addition, one alert goes to an absent receiver for every ten alerts.
  const plan: Planned[] = Array.from({ length: alerts }, (_, i) => [
    { at: i * every, index: i % receivers, turn: i + Math.floor(i / receivers) },
    ...(i % 10 === 5
      ? [{ at: (i + 0.5) * every, index: receivers + (((i - 5) / 10) % absent), turn: (i - 5) / 10 }]
      : []),
  ]).flat()

  /**
   * Sends an alert as a service would. Without a 202 response, sends the alert again, at most three times. If no
   * response arrived, the gateway may already have stored the alert.
   */
  async function one({ index, turn }: Planned, number: number): Promise<Emitted> {
    const before: number[] = []
    for (;;) {
      const port = alive[turn % alive.length]?.admin ?? 0
      const alert = { type: 'drill.alert', data: { number }, user_id: users[index] }
      const { status, took, at } = await emit(port, alert).catch(() => none)
      if (status === 202 || before.length === 3) return { index, status, took, at, before }
      before.push(status)
      await sleep(100)
    }
  }

  async function all(): Promise<Emitted[]> {
    const begun = performance.now()
    const running: Promise<Emitted>[] = []
    for (const [number, each] of plan.entries()) {
      await sleep(Math.max(0, begun + each.at - performance.now()))
      running.push(one(each, number))
    }
    return Promise.all(running)
  }
  return { done: all(), without: replica => alive.splice(alive.indexOf(replica), 1) }
}

const none: EmitAnswer = { status: 0, deliveries: 0, took: 0, at: 0n }

/**
 * Returns the IDs of the deliveries that the killed replica had leased. Only these deliveries are still pending after
 * 1.5 s, because the other replica completes its own deliveries within a second.
 */
async function leasedByTheDead(database: Pool, healthy: readonly number[]): Promise<Set<string>> {
  const look = async () => {
    const { rows } = await database.query<{ id: string }>(
      `select 'msg_' || replace(alert_id::text, '-', '') || '_' || user_id as id from webhook_deliveries
        where user_id = any($1) and status = 'pending' and attempts = 1 and due_at > created_at`,
      [healthy],
    )
    return rows.map(({ id }) => id)
  }
  await sleep(200)
  const before = await look()
  await sleep(1_500)
  const after = new Set(await look())
  return new Set(before.filter(id => after.has(id)))
}

/**
 * Waits at most 45 s until all deliveries to healthy receivers have ended. The leases of the killed replica expire
 * within 40 s.
 */
async function settled(database: Pool, healthy: readonly number[]): Promise<void> {
  for (let waited = 0; waited < 45_000; waited += 500) {
    const { rows } = await database.query(
      `select 1 from webhook_deliveries where status = 'pending' and user_id = any($1) limit 1`,
      [healthy],
    )
    if (rows.length === 0) return
    await sleep(500)
  }
}

/** Checks that one alert to 100,000 users gets a response within 2 s, even while earlier alerts are being delivered. */
async function alertEverybody({ say, expect }: Watch): Promise<void> {
  const stage = await startReplicas({ settings: 'webhooks: { allow_private_networks: true }' })
  try {
    const secret = newSecret()
    // No server listens at the addresses of these receivers. Half of the users share one receiver, for example a chat
    // service. Each other user has a separate receiver.
    const webhooks = Array.from({ length: many }, (_, i) => {
      const receiver = i % 2 === 0 ? '127.0.0.2:1' : `127.1.${(i >> 8) & 0xff}.${i & 0xff}:${1 + (i >> 16)}`
      return { url: `https://${receiver}/alerts`, receiver, secret }
    })
    await createUsers(stage.database, webhooks)
    const [{ admin }] = stage.replicas
    for (const nth of ['first', 'second', 'third']) {
      const { status, deliveries, took } = await emit(admin, { type: 'drill.everybody', data: {} })
      expect(
        `the ${nth} alert to ${many} users gets a response within 2 s`,
        status === 202 && deliveries === many && took < 2_000,
        `${took.toFixed(0)} ms, status code ${status}, ${deliveries} deliveries`,
      )
    }
    const { rows } = await stage.database.query('select count(*) from webhook_deliveries where attempts > 0')
    say(`${rows[0]?.count} deliveries were tried in this time`)
  } finally {
    await stage.stop()
  }
}
