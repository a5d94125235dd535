// Checks which receivers got which alerts, when, and how often. Also checks the stored status of all deliveries.
import type { Pool } from 'pg'
import { type Emitted, kindOf, kinds } from './alert-kinds.ts'
import { quantiles } from './alerts.ts'
import type { Receipt } from './serve-receivers.ts'
import type { Watch } from './watch.ts'

interface Seen {
  /** The alerts that the drill sent. The index of each entry is the number of the alert. */
  readonly emitted: readonly Emitted[]
  readonly receipts: readonly Receipt[]
  /** The IDs (`webhook-id`) of the messages that the killed replica had leased for delivery when it was killed. */
  readonly leased: ReadonlySet<string>
  /** The time of the kill. */
  readonly killed: bigint
}

export function judgeReceipts({ say, expect }: Watch, { emitted, receipts, leased, killed }: Seen): void {
  const bogus = receipts.filter(({ number }) => number === undefined)
  expect(
    'every signature is valid',
    bogus.length === 0 && receipts.length > 0,
    `${bogus.length} of ${receipts.length} are invalid`,
  )
  const strays = receipts.filter(
    ({ number, receiver }) => number !== undefined && emitted[number]?.index !== receiver,
  )
  expect('no alert reaches another receiver', strays.length === 0, `${strays.length} alerts did`)

  /**
   * `firsts` maps the number of an alert to its first receipt. `times` maps the ID of a message to the number of its
   * receipts.
   */
  const firsts = new Map<number | undefined, Receipt>()
  const times = new Map<string, number>()
  for (const receipt of receipts.filter(({ receiver }) => kindOf(receiver) === 'up')) {
    if (!firsts.has(receipt.number)) firsts.set(receipt.number, receipt)
    times.set(receipt.id, (times.get(receipt.id) ?? 0) + 1)
  }
  const due = [...emitted.entries()].filter(([, { index }]) => kindOf(index) === 'up')
  const came = due.flatMap(([number, { at }]) => {
    const receipt = firsts.get(number)
    return receipt === undefined ? [] : [{ receipt, delay: Number(receipt.at - at) / 1e6 }]
  })
  expect(
    'every alert reaches its healthy receiver',
    came.length === due.length,
    `${came.length} of ${due.length}`,
  )

  const twice = [...times].filter(([, count]) => count > 1)
  const known = twice.filter(([id, count]) => leased.has(id) && count === 2)
  const before = emitted.flatMap(one => one.before)
  const cut = before.filter(status => status === 0).length
  say(
    `the kill cut off ${cut} requests, and ${before.length - cut} were refused; all of these alerts were sent again`,
  )
  expect(
    'only alerts that the killed replica had leased arrive twice',
    known.length === twice.length,
    `${twice.length} arrived twice, ${leased.size} were leased`,
  )

  const delays = quantiles(came.filter(({ receipt }) => !leased.has(receipt.id)).map(({ delay }) => delay))
  expect(
    'the median delay at healthy receivers is below 1 s',
    delays(0.5) < 1_000,
    `${delays(0.5).toFixed(0)} ms, p99 ${delays(0.99).toFixed(0)} ms, maximum ${delays(1).toFixed(0)} ms`,
  )
  if (leased.size > 0) {
    const again = receipts
      .filter(({ id, at }) => leased.has(id) && at > killed)
      .map(({ at }) => Number(at - killed) / 1e9)
    const latest = Math.max(...again)
    expect(
      'the other replica takes over expired leases within 40 s of the kill',
      latest < 40,
      `${again.length} leases, the last ${latest.toFixed(1)} s after the kill`,
    )
  }
}

interface DeliveryCount {
  readonly user_id: string
  readonly status: 'pending' | 'delivered' | 'failed' | 'dropped'
  readonly is_tried: boolean
  readonly count: number
}

/** @param users the user IDs, in the order of their receivers */
export async function judgeDeliveries(
  { say, expect }: Watch,
  database: Pool,
  users: readonly number[],
  emitted: readonly Emitted[],
): Promise<void> {
  const medians = kinds.map(kind => {
    const took = emitted.filter(({ index }) => kindOf(index) === kind).map(one => one.took)
    return { kind, median: quantiles(took)(0.5) }
  })
  const refused = emitted.filter(({ status }) => status !== 202).length
  expect('every alert gets a 202', refused === 0, `${emitted.length - refused} of ${emitted.length}`)
  const values = medians.map(({ median }) => median)
  // If the request that sends an alert waited for the receiver, the medians would differ by 100 ms or more. Smaller
  // differences are normal on a busy machine.
  expect(
    'sending an alert takes the same time for every kind of receiver',
    Math.max(...values) < 1.5 * Math.min(...values),
    `medians in ms: ${medians.map(({ kind, median }) => `${kind} ${median.toFixed(1)}`).join(', ')}`,
  )

  const { rows } = await database.query<DeliveryCount>(
    `select user_id, status, attempts > 0 as is_tried, count(*)::integer as count from webhook_deliveries group by 1, 2, 3`,
  )
  const sum = (isCounted: (row: DeliveryCount) => boolean) =>
    rows.filter(isCounted).reduce((total, { count }) => total + count, 0)
  for (const kind of kinds) {
    const ids = new Set(users.filter((_, index) => kindOf(index) === kind).map(String))
    const ofKind = (isCounted: (row: DeliveryCount) => boolean) =>
      sum(row => ids.has(row.user_id) && isCounted(row))
    const delivered = ofKind(({ status }) => status === 'delivered')
    const pending = ofKind(({ status }) => status === 'pending')
    const untried = ofKind(({ is_tried }) => !is_tried)
    say(`${kind}: ${delivered} delivered, ${pending} pending, ${untried} not tried yet`)
  }
  const givenUp = sum(({ status }) => status === 'failed' || status === 'dropped')
  const all = sum(() => true)
  expect('no delivery is given up', givenUp === 0 && all >= emitted.length, `${givenUp} of ${all}`)
}
