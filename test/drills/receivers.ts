// An SMTP server and webhook receivers have faults: they are down, slow, full, rejecting, lying or silent. These faults
// do not delay other requests and other deliveries.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from 'pg'
import { first } from '../support/certificates.ts'
import { cpuSeconds } from '../support/process-stat.ts'
import { bearer, createAccounts, login, noRateLimits } from './accounts.ts'
import { createUsers, emit, newSecret, quantiles } from './alerts.ts'
import { watchHeaps } from './heaps.ts'
import { createMovedClock, type MovedClock } from './moved-clock.ts'
import { MiB } from './noise.ts'
import { openStage, type Replica } from './replicas.ts'
import { setting } from './settings.ts'
import { type SmtpAndWebhooks, startSmtpAndWebhooks, troubles } from './smtp-and-webhooks.ts'
import { serviceAt, startUpstream } from './stage.ts'
import { post, send } from './subjects.ts'
import type { Watch } from './watch.ts'

/** The seconds that each kind of trouble lasts. */
const seconds = setting('RECEIVERS_SECONDS', 30, 4)
const perSecond = 10
const [troubled, healthy] = [10, 5]
const hour = 3_600_000

/**
 * The same figure, measured at two gateways. Some receivers of the gateway `within` have a fault. All receivers of the
 * gateway `without` are healthy.
 */
interface Both<T> {
  readonly without: T
  readonly within: T
}

interface Played {
  /** The durations of requests in milliseconds. */
  readonly requests: Both<number[]>
  /** The delays of alerts to healthy receivers in milliseconds; infinite for alerts that did not arrive. */
  readonly delays: Both<number[]>
}

export async function receivers(watch: Watch): Promise<void> {
  const { say, expect } = watch
  const upstream = await startUpstream()
  const stages: Stage[] = []
  try {
    const without = await openGateway('without', upstream.port)
    stages.push(without)
    const within = await openGateway('with', upstream.port)
    stages.push(within)
    // Both gateways get the same requests at the same time.
    const play = async (): Promise<Played> => {
      const [requests, calm, held] = await Promise.all([
        askInTurn({ without, within }),
        feed(without, seconds * perSecond),
        feed(within, seconds * perSecond),
      ])
      return { requests, delays: { without: calm, within: held } }
    }
    /**
     * Returns the ratio of the request durations of the two gateways while no receiver has a fault. This ratio is not
     * exactly 1. So the drill compares the ratio during a fault with this ratio.
     */
    const ratioWhileWell = async () => {
      const { requests } = await play()
      return median(requests.within) / median(requests.without)
    }
    // The first run is a warm-up, in which code is compiled and pools fill.
    await play()
    const heapBefore = await within.heap()
    let wellBefore = await ratioWhileWell()
    for (const trouble of troubles) {
      await within.others.be(trouble)
      const cpu = () => stages.map(({ gateway }) => cpuSeconds(gateway.pids))
      const before = cpu()
      const played = await play()
      const [usual, now] = cpu().map((used, at) => (used - (before[at] ?? 0)).toFixed(2))
      say(`CPU of the gateway: ${now} s with trouble, ${usual} s without`)
      await within.others.be('well')
      await settled(within.database)
      const wellAfter = await ratioWhileWell()
      judge(`${trouble}: `, played, [wellBefore, wellAfter], expect)
      wellBefore = wellAfter
    }
    const heapGrowth = ((await within.heap()) - heapBefore) / MiB
    const grown = `${heapGrowth.toFixed(1)} MiB`
    expect('the heap after garbage collection grows by less than 6 MiB', heapGrowth < 6, grown)
    const failed = stages.flatMap(stage => stage.failed)
    expect('no request fails', failed.length === 0, `${failed.length} ${[...new Set(failed)]}`)
    await judgeReturn(within, watch)
  } finally {
    for (const { stop } of stages) await stop()
    await upstream.stop()
  }
}

/** A gateway with its own database and receivers. */
interface Stage {
  readonly gateway: Replica
  readonly others: SmtpAndWebhooks
  readonly database: Pool
  readonly headers: { readonly authorization: string }
  /** The emails of accounts that have not requested a password reset yet. */
  readonly emails: string[]
  /** The user IDs in the order of the receivers. */
  readonly users: readonly number[]
  /** The number of mail requests that got a 202. */
  asked: number
  alerts: number
  /** The status code of each client request that did not get a 200. */
  readonly failed: number[]
  /** Collects garbage, and returns the size of the heap in bytes. */
  heap(): Promise<number>
  /**
   * Restarts the gateway with a movable clock. A movable clock makes clock reads slower, so the measurements run
   * without it.
   */
  startWithClock(): Promise<MovedClock>
  stop(): Promise<void>
}

async function openGateway(name: string, upstream: number): Promise<Stage> {
  const others = await startSmtpAndWebhooks({ troubled, healthy })
  const stage = await openStage()
  const stop = async () => {
    await stage.stop()
    await others.stop()
  }
  try {
    const heaps = watchHeaps(stage.folder)
    const setting = {
      settings: `auth: { ${noRateLimits} }
webhooks: { allow_private_networks: true }
mail: { smtp: '${others.smtp}', from: 'drill@example.com', code_ttl: { reset: 30d }, rate_limits: { per_address: 0, per_email: 0 } }`,
      routing: `${serviceAt(upstream)}
routes:
  - { path: /public/small, upstream: service }`,
      env: { NODE_EXTRA_CA_CERTS: first.files.cert, ...heaps.env },
    }
    const gateway = await stage.start(setting)
    const emails = await createAccounts(stage.database, (2 * troubles.length + 2) * seconds * perSecond + 1)
    const { access } = await login(gateway.port, emails.pop() ?? '')
    const webhooks = others.receivers.map(receiver => ({
      url: `https://${receiver}/`,
      receiver,
      secret: newSecret(),
    }))
    return {
      gateway,
      others,
      database: stage.database,
      headers: bearer(access),
      emails,
      users: await createUsers(stage.database, webhooks),
      asked: 0,
      alerts: 0,
      failed: [],
      heap: () => heaps.sumOf([gateway.pid]),
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

/**
 * Waits until no attempt to send a mail or an alert is due soon. Otherwise, attempts of this trouble would run during
 * the next measurement.
 */
async function settled(database: Pool): Promise<void> {
  for (let waited = 0; waited < 75_000; waited += 1_000) {
    const { rows } = await database.query(
      `select 1 from (select status, due_at from mails union all select status, due_at from webhook_deliveries) all_of
        where status = 'pending' and due_at < now() + interval '80 s' limit 1`,
    )
    if (rows.length === 0) return
    await sleep(1_000)
  }
}

/** Sends requests of a client to both gateways in turn. */
async function askInTurn(stages: Both<Stage>): Promise<Both<number[]>> {
  const both = ['without', 'within'] as const
  const took: Both<number[]> = { without: [], within: [] }
  const until = performance.now() + seconds * 1_000
  for (let turn = 0; performance.now() < until; turn += 1) {
    // The order alternates, so that no gateway is always first.
    for (const which of turn % 2 === 0 ? both : both.toReversed()) {
      const { gateway, headers, failed } = stages[which]
      const begun = performance.now()
      const { status } = await send(gateway.port, 'GET', '/public/small', headers)
      if (status !== 200) failed.push(status)
      took[which].push(performance.now() - begun)
    }
    await sleep(5)
  }
  return took
}

/**
 * Requests mails and sends alerts at a fixed rate.
 * @returns the delay of each alert to a healthy receiver, in milliseconds
 */
async function feed(stage: Stage, count: number): Promise<number[]> {
  const emitted = new Map<number, bigint>()
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

/** Sends an alert. If the gateway does not accept the alert, tries again. */
async function alert(stage: Stage, receiver: number): Promise<{ number: number; at: bigint }> {
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

const median = (values: readonly number[]) => quantiles(values)(0.5)

/**
 * `before` and `after` are ratios of the request durations of the two gateways while no receiver has a fault. The drill
 * measures them before and after the trouble.
 */
function judge(
  title: string,
  { requests, delays }: Played,
  [before, after]: readonly [number, number],
  expect: Watch['expect'],
): void {
  const [calm, held] = [median(requests.without), median(requests.within)]
  const times = held / calm / Math.sqrt(before * after)
  expect(
    `${title}client requests take at most 1.1 times as long as without trouble (medians)`,
    times <= 1.1,
    `${times.toFixed(3)} times: ${held.toFixed(2)} ms, ${calm.toFixed(2)} ms without; ratio ${before.toFixed(3)} before and ${after.toFixed(3)} after; ${requests.within.length} requests each`,
  )
  const [usual, now] = [median(delays.without), median(delays.within)]
  const missing = delays.within.filter(ms => !Number.isFinite(ms)).length
  expect(
    `${title}alerts to healthy receivers are delayed by at most 100 ms (medians)`,
    missing === 0 && now <= usual + 100,
    `${now.toFixed(0)} ms, ${usual.toFixed(0)} ms without; ${missing} of ${delays.within.length} did not arrive`,
  )
}

/**
 * Sets the gateway's clock forward in steps of two hours until no mail and no alert is pending. Then checks what has
 * arrived.
 */
async function judgeReturn(stage: Stage, { say, expect }: Watch): Promise<void> {
  const { database, asked, others } = stage
  const pending = async (table: 'mails' | 'webhook_deliveries') => {
    const { rows } = await database.query<{ n: number }>(
      `select count(*)::integer as n from ${table} where status = 'pending'`,
    )
    return rows[0]?.n ?? 0
  }
  const left = async () => (await pending('mails')) + (await pending('webhook_deliveries'))
  const before = { mails: await pending('mails'), deliveries: await pending('webhook_deliveries') }
  const clock = await stage.startWithClock()
  const now = Date.now() % (24 * hour)
  let hours = 0
  while ((await left()) > 0 && hours < 12) {
    hours += 2
    clock.set(0, now + hours * hour)
    // All due attempts start at once. The slowest attempts end only at their deadline, so the drill waits up to 75 s.
    for (let waited = 0; waited < 75_000 && (await left()) > 0; waited += 1_000) await sleep(1_000)
  }
  say(
    `${before.mails} mails and ${before.deliveries} deliveries were pending after the troubles; all ended within ${hours} hours of the gateway's clock`,
  )
  const { mails: received } = await others.received()
  const { rows: mails } = await database.query<{
    address: string
    status: string
    response_status: number | null
  }>('select address, status, response_status from mails')
  const sent = mails.filter(({ status }) => status === 'sent')
  const missing = sent.filter(({ address }) => !received.has(address)).length
  const twice = sent.filter(({ address }) => (received.get(address) ?? 0) > 1).length
  const refused = mails.filter(mail => mail.status === 'failed' && mail.response_status === 550)
  expect(
    'every mail arrives after the troubles, except mails that the server refused (550)',
    missing === 0 && sent.length > 0 && refused.length > 0 && sent.length + refused.length === asked,
    `${asked} requested, ${sent.length} sent, ${refused.length} refused; ${missing} missing, ${twice} arrived more than once`,
  )
  const { rows: deliveries } = await database.query<{ status: string; n: number }>(
    'select status, count(*)::integer as n from webhook_deliveries group by 1 order by 1',
  )
  expect(
    'every alert arrives after the troubles',
    deliveries.map(({ status }) => status).join() === 'delivered',
    deliveries.map(({ status, n }) => `${n} ${status}`).join(', '),
  )
}
