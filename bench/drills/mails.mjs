// Mails while the SMTP server is away for an hour by the gateway's clock; then as many at once as a queue may hold.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { forEach } from '../measure/own-stores.mjs'
import { createAccounts, noRateLimits } from './accounts.mjs'
import { peakDuring } from './memory.mjs'
import { createMovedClock } from './moved-clock.mjs'
import { MiB } from './noise.mjs'
import { heapsOf } from './reload.mjs'
import { openStage } from './replicas.mjs'
import { setting } from './settings.mjs'
import { startSmtpAndWebhooks } from './smtp-and-webhooks.mjs'
import { post } from './subjects.mjs'

const asked = 200
const queued = setting('MAILS', 100_000, 2_000)
/** Seconds between two attempts, with a tenth more and the time of the attempts. */
const retries = [40, 140, 670]
const hour = 3_600
const hook = new URL('heap-on-signal.mjs', import.meta.url).href

/** @type {import('./main.mjs').Drill} */
export async function mails(watch) {
  const others = await startSmtpAndWebhooks()
  const stage = await openStage()
  try {
    const clock = createMovedClock(stage.folder, 'gateway')
    const heapFile = join(stage.folder, 'heap')
    const gateway = await stage.start({
      settings: `auth: { ${noRateLimits} }
mail: { smtp: '${others.smtp}', from: 'drill@example.com', code_ttl: { reset: 24h }, rate_limits: { per_address: 0, per_email: 0 } }`,
      env: { ...clock.env, NODE_OPTIONS: `--import=${hook}`, HEAP_FILE: heapFile },
    })
    const play = { ...watch, others, gateway, clock, database: stage.database }
    await downForAnHour(play)
    await manyQueued({ ...play, heap: async () => (await heapsOf(gateway.pids, heapFile))[0].heapUsed })
  } finally {
    await stage.stop()
    await others.stop()
  }
}

async function downForAnHour({ expect, others, gateway, clock, database }) {
  await others.be('down')
  const emails = await createAccounts(database, asked)
  const took = []
  await forEach(emails, 8, async email => {
    const begun = performance.now()
    const { status } = await post(gateway.port, 'password/forgot', { email })
    if (status !== 202) throw new Error(`a mail that was asked for was answered ${status}`)
    took.push(performance.now() - begun)
  })
  let movedMs = 0
  const pass = seconds => {
    movedMs += seconds * 1_000
    clock.set(0, (Date.now() % 86_400_000) + movedMs)
  }
  const tried = [await triedTimes(database, 1)]
  for (const [at, after] of retries.entries()) {
    pass(after)
    tried.push(await triedTimes(database, at + 2))
  }
  pass(hour - movedMs / 1_000)
  await others.be('well')
  // The next try of each is due an hour after the last.
  pass(hour)
  let received = new Map()
  for (let waited = 0; waited < 60_000 && received.size < asked; waited += 200) {
    await sleep(200)
    received = (await others.received()).mails
  }
  const once = emails.filter(email => received.get(email) === 1).length
  const every = tried.every(count => count === asked)
  expect(
    'SMTP down for an hour: every mail is tried after 30 s, 2 m and 10 m, and comes once when the server is back',
    once === asked && every,
    `${once} of ${asked} came once; tried by then: ${tried.join(', ')}`,
  )
  const slowest = Math.max(...took)
  expect('no request waits for it', slowest < 1_000, `${slowest.toFixed(0)} ms at most`)
}

/**
 * One that is being tried has its number already, and its error only when it is recorded; the next is due from then on.
 * @returns {Promise<number>} how many mails have been tried so often, once all have or a minute is over
 */
async function triedTimes(database, times) {
  for (let waited = 0; ; waited += 200) {
    const { rows } = await database.query(
      'select count(*)::integer as n from mails where attempts = $1 and error is not null',
      [times],
    )
    if (rows[0].n === asked || waited > 60_000) {
      await database.query('update mails set error = null')
      return rows[0].n
    }
    await sleep(200)
  }
}

async function manyQueued({ expect, say, others, gateway, database, heap }) {
  const before = (await others.received()).mails.size
  const heapBefore = await heap()
  // As notices are stored: no code, good for a day.
  await database.query(
    `insert into mails (user_id, kind, address, due_at, expires_at, created_at)
     select (select min(id) from users), 'password_changed', 'queued-' || i || '@drill.test', now(), now() + interval '1 day', now()
       from generate_series(1, $1::integer) i`,
    [queued],
  )
  const begun = performance.now()
  const { growth } = await peakDuring(gateway.pids[0] ?? 0, () => untilReceived(others, before + queued))
  const ours = queued / ((performance.now() - begun) / 1_000)
  for (let waited = 0; waited < 20_000; waited += 200) {
    const { rows } = await database.query("select 1 from mails where status = 'pending' limit 1")
    if (rows.length === 0) break
    await sleep(200)
  }
  const heapAfter = await heap()
  const { mails } = await others.received()
  const more = [...mails].filter(([to, times]) => to.startsWith('queued-') && times > 1).length
  const { rows } = await database.query(
    "select status, count(*)::integer as n from mails where address like 'queued-%' group by 1",
  )
  expect(
    `${queued} queued mails come, each once`,
    mails.size === before + queued && more === 0 && rows.length === 1 && rows[0].status === 'sent',
    `${mails.size - before} came, ${more} more than once; ${rows.map(({ status, n }) => `${n} ${status}`)}`,
  )
  expect(
    'meanwhile memory grows by less than 64 MiB, and the heap after collection by less than 6 MiB',
    growth < 64 && heapAfter - heapBefore < 6 * MiB,
    `${growth.toFixed(0)} and ${((heapAfter - heapBefore) / MiB).toFixed(1)} MiB`,
  )
  const theirs = await nodemailerAlone(others)
  expect(
    'at a quarter or more of the rate of nodemailer alone, which stores nothing',
    ours >= theirs / 4,
    `${ours.toFixed(0)} mails a second over 10 connections, ${theirs.toFixed(0)} alone: ${(ours / theirs).toFixed(2)}`,
  )
  say('each mail of the gateway is leased from and recorded in Postgres')
}

async function untilReceived(others, count) {
  for (let waited = 0; waited < 1_800_000; waited += 250) {
    const { mails } = await others.count()
    if (mails >= count) return
    await sleep(250)
  }
  throw new Error('the mails do not come')
}

/** Over as many connections, to the same server. @returns {Promise<number>} mails a second */
async function nodemailerAlone(others) {
  const child = fork(fileURLToPath(new URL('send-by-nodemailer.mjs', import.meta.url)), [
    others.smtp,
    String(queued),
  ])
  const [seconds] = await once(child, 'message')
  return queued / seconds
}
