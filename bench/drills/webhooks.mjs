// Alerts while receivers hang, fail or are gone and a replica is killed: nobody healthy waits, and nothing is lost.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { gone, kindOf, receivers } from './alert-kinds.mjs'
import { judgeReceipts, judgeTheRest } from './alert-verdict.mjs'
import { createUsers, emit, newSecret } from './alerts.mjs'
import { alertEverybody } from './everybody.mjs'
import { startReplicas } from './replicas.mjs'

const perSecond = 50
const alerts = 3_000

/** @type {import('./main.mjs').Drill} */
export async function webhooks(watch) {
  await alertEach(watch)
  await alertEverybody(watch)
}

async function alertEach({ say, expect }) {
  const authority = fileURLToPath(
    new URL('../../test/support/certificates/test-only-first.cert.pem', import.meta.url),
  )
  const stage = await startReplicas({
    settings: 'webhooks: { allow_private_networks: true }',
    env: { NODE_EXTRA_CA_CERTS: authority },
  })
  const child = fork(fileURLToPath(new URL('serve-receivers.mjs', import.meta.url)), {
    serialization: 'advanced',
  })
  try {
    const users = await createUsers(stage.database, await startReceivers(child))
    const [first, second] = stage.replicas
    const load = startEmitting(users, [first, second])
    await sleep((alerts / perSecond / 2) * 1000)
    process.kill(first.pids[0], 'SIGKILL')
    const killed = process.hrtime.bigint()
    load.without(first)
    const leased = await leasedByTheDead(stage.database, users)
    const emitted = await load.done
    await settled(stage.database, users)
    child.send('receipts')
    const [receipts] = await once(child, 'message')
    judgeReceipts({ say, expect, emitted, receipts, leased, killed })
    await judgeTheRest({ say, expect, database: stage.database, users, emitted })
  } finally {
    child.kill('SIGKILL')
    await stage.stop()
  }
}

async function startReceivers(child) {
  const kinds = Array.from({ length: receivers + gone }, (_, index) => kindOf(index))
  const secrets = kinds.map(newSecret)
  const served = kinds.slice(0, receivers).map((kind, index) => ({ kind, secret: secrets[index] }))
  child.send(served)
  const [ports] = await once(child, 'message')
  return kinds.map((_, index) => {
    const receiver = index < receivers ? `127.0.0.1:${ports[index]}` : `127.0.1.${index - receivers}:1`
    return { url: `https://${receiver}/alerts`, receiver, secret: secrets[index] ?? '' }
  })
}

/**
 * @typedef {{ index: number, status: number, took: number, at: bigint, before: number[] }} Emitted by its number;
 *   `before` what was answered to it first, 0 where nothing was
 * @returns {{ without(replica: object): void, done: Promise<Emitted[]> }}
 */
function startEmitting(users, replicas) {
  const alive = [...replicas]
  const every = 1_000 / perSecond
  /** One to each in turn, and from the other replica in the next round; between them those for nobody. */
  const plan = Array.from({ length: alerts }, (_, i) => [
    { at: i * every, index: i % receivers, turn: i + Math.floor(i / receivers) },
    ...(i % 10 === 5
      ? [{ at: (i + 0.5) * every, index: receivers + (((i - 5) / 10) % gone), turn: (i - 5) / 10 }]
      : []),
  ]).flat()

  /** As a service does: what was not answered, or refused for now, is sent again, and may have been stored all the same. */
  async function one({ index, turn }, number, before = []) {
    const alert = { type: 'drill.alert', data: { number }, user_id: users[index] }
    const { status, took, at } = await emit(alive[turn % alive.length].admin, alert).catch(nothing)
    if (status === 202 || before.length === 3) return { index, status, took, at, before }
    await sleep(100)
    return one({ index, turn }, number, [...before, status])
  }

  async function all() {
    const begun = performance.now()
    const under = []
    for (const [number, each] of plan.entries()) {
      await sleep(Math.max(0, begun + each.at - performance.now()))
      under.push(one(each, number))
    }
    return Promise.all(under)
  }
  return { done: all(), without: replica => alive.splice(alive.indexOf(replica), 1) }
}

function nothing() {
  return { status: 0, took: 0, at: 0n }
}

/** Deliveries to healthy receivers that the killed replica had: the living one's are over within the second. */
async function leasedByTheDead(database, users) {
  const look = async () => {
    const { rows } = await database.query(
      `select 'msg_' || replace(alert_id::text, '-', '') || '_' || user_id as id from webhook_deliveries
        where user_id = any($1) and status = 'pending' and attempts = 1 and due_at > created_at`,
      [users.filter((_, index) => kindOf(index) === 'up')],
    )
    return rows.map(({ id }) => id)
  }
  await sleep(200)
  const before = await look()
  await sleep(1_500)
  const after = new Set(await look())
  return new Set(before.filter(id => after.has(id)))
}

/** Waits until the healthy receivers have all their deliveries. A lease of the killed replica ends within 40 s. */
async function settled(database, users) {
  const healthy = users.filter((_, index) => kindOf(index) === 'up')
  for (let waited = 0; waited < 45_000; waited += 500) {
    const { rows } = await database.query(
      `select 1 from webhook_deliveries where status = 'pending' and user_id = any($1) limit 1`,
      [healthy],
    )
    if (rows.length === 0) return
    await sleep(500)
  }
}
