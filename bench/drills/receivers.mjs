// An SMTP server and receivers of webhooks that are down, slow, full, rejecting, lying or silent: nobody else is held up.
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { cpuSeconds } from '../costs.mjs'
import { bearer, createAccounts, login, noRateLimits } from './accounts.mjs'
import { createUsers, emit, newSecret, quantiles } from './alerts.mjs'
import { createMovedClock } from './moved-clock.mjs'
import { MiB } from './noise.mjs'
import { heapsOf } from './reload.mjs'
import { openStage } from './replicas.mjs'
import { setting } from './settings.mjs'
import { authority, startSmtpAndWebhooks, troubles } from './smtp-and-webhooks.mjs'
import { startUpstream } from './stage.mjs'
import { post, send } from './subjects.mjs'

/** Of each kind of trouble. */
const seconds = setting('RECEIVERS_SECONDS', 30, 4)
const perSecond = 10
const [troubled, healthy] = [10, 5]
const hour = 3_600_000
const hook = new URL('heap-on-signal.mjs', import.meta.url).href

/** @type {import('./main.mjs').Drill} */
export async function receivers({ say, expect }) {
  const upstream = await startUpstream()
  const stages = []
  try {
    // The same is asked of both at the same time, and only the second's receivers get into trouble.
    for (const name of ['without', 'with']) stages.push(await open(name, upstream.port))
    const [without, within] = stages
    const play = async () => {
      const [requests, calm, held] = await Promise.all([
        askInTurn(stages),
        feed(without, seconds * perSecond),
        feed(within, seconds * perSecond),
      ])
      return { requests, delays: [calm, held] }
    }
    /** How many times as long the second gateway's requests take: two processes of one program differ, too. */
    const ratioWhileWell = async () => {
      const [first, second] = medians((await play()).requests)
      return second / first
    }
    // Until code is compiled and pools are full.
    await play()
    const heapBefore = await within.heap()
    let wellBefore = await ratioWhileWell()
    for (const trouble of troubles) {
      await within.others.be(trouble)
      const cpu = () => stages.map(({ gateway }) => cpuSeconds(gateway.pids))
      const before = cpu()
      const { requests, delays } = await play()
      const [usual, now] = cpu().map((used, at) => used - (before[at] ?? 0))
      say(`CPU of the gateway ${now.toFixed(2)} s, ${usual.toFixed(2)} s without`)
      await within.others.be('well')
      await settled(within)
      const wellAfter = await ratioWhileWell()
      judge(expect, trouble, { requests, whileWell: [wellBefore, wellAfter], delays })
      wellBefore = wellAfter
    }
    const heapAfter = await within.heap()
    expect(
      'the heap after collection grows by less than 6 MiB',
      heapAfter - heapBefore < 6 * MiB,
      `${((heapAfter - heapBefore) / MiB).toFixed(1)} MiB`,
    )
    const failed = stages.flatMap(({ failed }) => failed)
    expect('no request fails', failed.length === 0, `${failed.length} ${[...new Set(failed)]}`)
    await judgeReturn({ say, expect }, within)
  } finally {
    for (const { stop } of stages) await stop()
    await upstream.stop()
  }
}

/** A gateway on a database of its own, and receivers of its own. */
async function open(name, upstream) {
  const others = await startSmtpAndWebhooks({ troubled, healthy })
  const stage = await openStage()
  const stop = async () => {
    await stage.stop()
    await others.stop()
  }
  try {
    const heapFile = join(stage.folder, 'heap')
    const setting = {
      settings: `auth: { ${noRateLimits} }
webhooks: { allow_private_networks: true }
mail: { smtp: '${others.smtp}', from: 'drill@example.com', code_ttl: { reset: 30d }, rate_limits: { per_address: 0, per_email: 0 } }`,
      routing: `upstreams: { service: { targets: ['http://127.0.0.1:${upstream}'], connections_per_client: 128 } }
routes:
  - { path: /public/small, upstream: service }`,
      env: { NODE_EXTRA_CA_CERTS: authority, NODE_OPTIONS: `--import=${hook}`, HEAP_FILE: heapFile },
    }
    const gateway = await stage.start(setting)
    const emails = await createAccounts(stage.database, (2 * troubles.length + 2) * seconds * perSecond + 1)
    const { access } = await login(gateway.port, emails.pop() ?? '')
    const webhooks = others.receivers.map(receiver => ({
      url: `https://${receiver}/`,
      receiver,
      secret: newSecret(),
    }))
    const users = await createUsers(stage.database, webhooks)
    return {
      gateway,
      others,
      database: stage.database,
      headers: bearer(access),
      emails,
      users,
      /** Mails that were answered 202. */
      asked: 0,
      alerts: 0,
      /** Statuses of clients' requests that were not answered 200. @type {number[]} */
      failed: [],
      heap: async () => (await heapsOf(gateway.pids, heapFile))[0].heapUsed,
      /** Ends the gateway and starts another, whose clock can be moved: that costs at each look at it. */
      async startWithClock() {
        await gateway.stop()
        const clock = createMovedClock(stage.folder, name)
        await stage.start({ ...setting, env: { ...setting.env, ...clock.env } })
        return clock
      },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** What is tried again soon must not be taken for the work of the next trouble. At most until an attempt's deadline. */
async function settled({ database }) {
  for (let waited = 0; waited < 75_000; waited += 1_000) {
    const { rows } = await database.query(
      `select 1 from (select status, due_at from mails union all select status, due_at from webhook_deliveries) all_of
        where status = 'pending' and due_at < now() + interval '80 s' limit 1`,
    )
    if (rows.length === 0) return
    await sleep(1_000)
  }
}

/** Requests of a client, one gateway after the other. @returns {Promise<number[][]>} milliseconds, by gateway */
async function askInTurn(stages) {
  const took = stages.map(() => [])
  const until = performance.now() + seconds * 1_000
  for (let turn = 0; performance.now() < until; turn += 1) {
    // Each is as often the first.
    for (const at of turn % 2 === 0 ? [0, 1] : [1, 0]) {
      const { gateway, headers } = stages[at]
      const begun = performance.now()
      const { status } = await send(gateway.port, 'GET', '/public/small', headers)
      if (status !== 200) stages[at].failed.push(status)
      took[at].push(performance.now() - begun)
    }
    await sleep(5)
  }
  return took
}

/** Mails and alerts, at a fixed rate. @returns {Promise<number[]>} milliseconds until those to healthy receivers came */
async function feed(stage, count) {
  const emitted = new Map()
  const begun = performance.now()
  for (let turn = 0; turn < count; turn += 1) {
    await sleep(Math.max(0, begun + (turn * 1_000) / perSecond - performance.now()))
    const email = stage.emails.pop() ?? ''
    const [mail] = await Promise.all([
      post(stage.gateway.port, 'password/forgot', { email }),
      alert(stage, turn % troubled),
      alert(stage, troubled + (turn % healthy)).then(({ number, at }) => emitted.set(number, at)),
    ])
    if (mail.status === 202) stage.asked += 1
  }
  await sleep(1_500)
  const { alerts } = await stage.others.received()
  return [...emitted].map(([number, at]) => {
    const came = alerts.get(number)
    return came === undefined ? Number.POSITIVE_INFINITY : Math.max(0, Number(came - at) / 1e6)
  })
}

/** As a service does: what was refused for now is sent again. */
async function alert(stage, receiver) {
  stage.alerts += 1
  const number = stage.alerts
  const what = { type: 'drill.alert', data: { number }, user_id: stage.users[receiver] }
  for (let tries = 0; tries < 30; tries += 1) {
    const { status, at } = await emit(stage.gateway.admin, what)
    if (status === 202) return { number, at }
    await sleep(100)
  }
  throw new Error('an alert was refused thirty times')
}

const medians = rows => rows.map(each => quantiles(each)(0.5))

function judge(expect, trouble, { requests, whileWell, delays }) {
  const [calm, held] = medians(requests)
  const [before, after] = whileWell
  const times = held / calm / Math.sqrt(before * after)
  expect(
    `${trouble}: clients' requests take at most 1.1 times as long as while all was well (medians, in turn)`,
    times <= 1.1,
    `${times.toFixed(3)}: ${held.toFixed(2)} ms, ${calm.toFixed(2)} without, ${before.toFixed(3)} times before it and ${after.toFixed(3)} after; ${requests[1].length} of each`,
  )
  const [usual, now] = medians(delays)
  const late = delays[1].filter(ms => !Number.isFinite(ms)).length
  expect(
    `${trouble}: alerts to other receivers come in their usual time (medians, at most 100 ms more)`,
    late === 0 && now <= usual + 100,
    `${now.toFixed(0)} ms, ${usual.toFixed(0)} without; ${late} of ${delays[1].length} have not come`,
  )
}

/** Hours are passed by the gateway's clock, until nothing is left to be tried. */
async function judgeReturn({ say, expect }, stage) {
  const { database, asked, others } = stage
  const pending = async table =>
    (await database.query(`select count(*)::integer as n from ${table} where status = 'pending'`)).rows[0].n
  const left = async () => (await pending('mails')) + (await pending('webhook_deliveries'))
  const before = { mails: await pending('mails'), deliveries: await pending('webhook_deliveries') }
  const clock = await stage.startWithClock()
  const now = Date.now() % (24 * hour)
  let hours = 0
  while ((await left()) > 0 && hours < 12) {
    hours += 2
    clock.set(0, now + hours * hour)
    // What is in flight to one that was slow ends within its deadline; the rest is sent at once.
    for (let waited = 0; waited < 75_000 && (await left()) > 0; waited += 1_000) await sleep(1_000)
  }
  say(
    `${before.mails} mails and ${before.deliveries} deliveries were left when all was well again; all ended ${hours} hours later by the gateway's clock`,
  )
  const { mails: received } = await others.received()
  const { rows: mails } = await database.query('select address, status, attempts, response_status from mails')
  const sent = mails.filter(({ status }) => status === 'sent')
  const missing = sent.filter(({ address }) => !received.has(address)).length
  const twice = sent.filter(({ address }) => (received.get(address) ?? 0) > 1).length
  const refused = mails.filter(row => row.status === 'failed' && row.response_status === 550)
  expect(
    'after its return every mail has come, but for those that the server said no to (550)',
    missing === 0 && sent.length > 0 && refused.length > 0 && sent.length + refused.length === asked,
    `${asked} asked for, ${sent.length} sent, ${refused.length} refused; ${missing} missing, ${twice} more than once`,
  )
  const { rows: deliveries } = await database.query(
    'select status, count(*)::integer as n from webhook_deliveries group by 1 order by 1',
  )
  const counts = Object.fromEntries(deliveries.map(({ status, n }) => [status, n]))
  expect(
    'after their return every alert has come',
    Object.keys(counts).join() === 'delivered',
    JSON.stringify(counts),
  )
}
