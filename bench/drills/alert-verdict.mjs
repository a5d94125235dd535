// What is to be said of the alerts: who got them, how late, how often, and what became of the others.
import { kindOf, kinds } from './alert-kinds.mjs'
import { quantiles } from './alerts.mjs'

export function judgeReceipts({ say, expect, emitted, receipts, leased, killed }) {
  const bogus = receipts.filter(({ number }) => number === undefined)
  expect(
    'every signature is good',
    bogus.length === 0 && receipts.length > 0,
    `${bogus.length} of ${receipts.length} are not`,
  )
  const strays = receipts.filter(
    ({ number, receiver }) => number !== undefined && emitted[number]?.index !== receiver,
  )
  expect('none comes to another receiver', strays.length === 0, `${strays.length} did`)

  /** The first receipt of each alert, and how often each message came. */
  const firsts = new Map()
  const times = new Map()
  for (const receipt of receipts.filter(({ receiver }) => kindOf(receiver) === 'up')) {
    if (!firsts.has(receipt.number)) firsts.set(receipt.number, receipt)
    times.set(receipt.id, (times.get(receipt.id) ?? 0) + 1)
  }
  const due = emitted.flatMap(({ index }, number) => (kindOf(index) === 'up' ? [number] : []))
  const lost = due.filter(number => !firsts.has(number))
  expect(
    'every alert came to every healthy receiver',
    lost.length === 0,
    `${due.length - lost.length} of ${due.length}`,
  )

  const twice = [...times].filter(([, count]) => count > 1)
  const known = twice.filter(([id, count]) => leased.has(id) && count === 2)
  const before = emitted.flatMap(one => one.before)
  const cut = before.filter(status => status === 0).length
  say(
    `${cut} emits were cut off by the kill, ${before.length - cut} were refused; all of them were sent again`,
  )
  expect(
    'what came twice was under lease at the kill',
    known.length === twice.length,
    `${twice.length} came twice, ${leased.size} were under lease`,
  )

  const delayOf = number => Number(firsts.get(number).at - emitted[number].at) / 1e6
  const came = due.filter(number => firsts.has(number))
  const delays = quantiles(came.filter(number => !leased.has(firsts.get(number).id)).map(delayOf))
  expect(
    'median delay of the healthy is below 1 s',
    delays(0.5) < 1_000,
    `${delays(0.5).toFixed(0)} ms, p99 ${delays(0.99).toFixed(0)} ms, worst ${delays(1).toFixed(0)} ms`,
  )
  const again = receipts
    .filter(({ id, at }) => leased.has(id) && at > killed)
    .map(({ at }) => Number(at - killed) / 1e9)
  if (leased.size > 0) {
    const latest = Math.max(...again)
    expect(
      'leases are taken up within 40 s',
      latest < 40,
      `${again.length}, the last ${latest.toFixed(1)} s after the kill`,
    )
  }
}

export async function judgeTheRest({ say, expect, database, users, emitted }) {
  const medians = kinds.map(kind =>
    quantiles(emitted.filter(one => kindOf(one.index) === kind).map(({ took }) => took))(0.5),
  )
  const words = kinds.map((kind, i) => `${kind} ${medians[i].toFixed(1)}`).join(', ')
  const refused = emitted.filter(({ status }) => status !== 202).length
  expect('every emit is answered 202', refused === 0, `${emitted.length - refused} of ${emitted.length}`)
  // A receiver's second would show; what a busy machine adds to one or the other must not.
  expect(
    'emits take the same time whatever the receiver',
    Math.max(...medians) < 1.5 * Math.min(...medians),
    `medians in ms: ${words}`,
  )

  const { rows } = await database.query(
    `select user_id, status, attempts > 0 as is_tried, count(*)::integer as count from webhook_deliveries group by 1, 2, 3`,
  )
  const sum = wanted => rows.filter(wanted).reduce((total, { count }) => total + count, 0)
  for (const kind of kinds) {
    const ids = new Set(users.filter((_, index) => kindOf(index) === kind).map(String))
    const of = status => sum(row => ids.has(row.user_id) && row.status === status)
    const untried = sum(row => ids.has(row.user_id) && !row.is_tried)
    say(`${kind}: ${of('delivered')} delivered, ${of('pending')} to be tried again, ${untried} not tried yet`)
  }
  const given = sum(({ status }) => status === 'failed' || status === 'dropped')
  expect(
    'none is given up',
    given === 0 && sum(() => true) >= emitted.length,
    `${given} of ${sum(() => true)}`,
  )
}
