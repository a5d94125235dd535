// The SMTP server is down for an hour. To save time, the drill sets the gateway's clock forward instead of waiting.
// After that, the gateway sends a long queue of mails.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Pool } from 'pg'
import { forEach } from '../support/for-each.ts'
import { createAccounts, noRateLimits } from './accounts.ts'
import { type Heaps, watchHeaps } from './heaps.ts'
import { peakDuring } from './memory.ts'
import { createMovedClock, type MovedClock } from './moved-clock.ts'
import { MiB } from './noise.ts'
import { openStage, type Replica } from './replicas.ts'
import { setting } from './settings.ts'
import { type SmtpAndWebhooks, startSmtpAndWebhooks } from './smtp-and-webhooks.ts'
import { post } from './subjects.ts'
import type { Watch } from './watch.ts'

const asked = 200
const queued = setting('MAILS', 100_000, 2_000)
/**
 * For each retry, the seconds by which the drill sets the clock forward. The delays before the retries are 30 s, 2 min
 * and 10 min, and vary by up to a tenth. The rest is time for the attempt.
 */
const retries = [40, 140, 670]
const hour = 3_600

interface Playing {
  readonly others: SmtpAndWebhooks
  readonly gateway: Replica
  readonly clock: MovedClock
  readonly database: Pool
  readonly heaps: Heaps
}

export async function mails(watch: Watch): Promise<void> {
  const others = await startSmtpAndWebhooks()
  const stage = await openStage()
  try {
    const clock = createMovedClock(stage.folder, 'gateway')
    const heaps = watchHeaps(stage.folder)
    const gateway = await stage.start({
      settings: `auth: { ${noRateLimits} }
mail: { smtp: '${others.smtp}', from: 'drill@example.com', code_ttl: { reset: 24h }, rate_limits: { per_address: 0, per_email: 0 } }`,
      env: { ...clock.env, ...heaps.env },
    })
    const playing = { others, gateway, clock, database: stage.database, heaps }
    await downForAnHour(playing, watch)
    await manyQueued(playing, watch)
  } finally {
    await stage.stop()
    await others.stop()
  }
}

async function downForAnHour(
  { others, gateway, clock, database }: Playing,
  { expect }: Watch,
): Promise<void> {
  await others.be('down')
  const emails = await createAccounts(database, asked)
  let slowest = 0
  await forEach(emails, 8, async email => {
    const begun = performance.now()
    const { status } = await post(gateway.port, 'password/forgot', { email })
    if (status !== 202) throw new Error(`a mail request got ${status}`)
    slowest = Math.max(slowest, performance.now() - begun)
  })
  let movedMs = 0
  const pass = (seconds: number) => {
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
  // The gateway now waits an hour between two attempts. So after this hour, the next attempt of every mail is due.
  pass(hour)
  let { mails: received } = await others.received()
  for (let waited = 0; waited < 60_000 && received.size < asked; waited += 200) {
    await sleep(200)
    received = (await others.received()).mails
  }
  const cameOnce = emails.filter(email => received.get(email) === 1).length
  expect(
    'SMTP down for an hour: every mail is retried after 30 s, 2 min and 10 min, and arrives once afterwards',
    cameOnce === asked && tried.every(count => count === asked),
    `${cameOnce} of ${asked} arrived once; tried: ${tried.join(', ')}`,
  )
  expect('no request waits for the SMTP server', slowest < 1_000, `at most ${slowest.toFixed(0)} ms`)
}

/**
 * Waits until the gateway has tried every mail `times` times, at most for a minute. Returns the number of mails with
 * exactly `times` attempts. The gateway increments `attempts` when an attempt starts, and stores the error when the
 * attempt ends. So the query checks both.
 */
async function triedTimes(database: Pool, times: number): Promise<number> {
  for (let waited = 0; ; waited += 200) {
    const { rows } = await database.query<{ n: number }>(
      'select count(*)::integer as n from mails where attempts = $1 and error is not null',
      [times],
    )
    const tried = rows[0]?.n ?? 0
    if (tried === asked || waited > 60_000) {
      await database.query('update mails set error = null')
      return tried
    }
    await sleep(200)
  }
}

async function manyQueued(
  { others, gateway, database, heaps }: Playing,
  { say, expect }: Watch,
): Promise<void> {
  const before = (await others.received()).mails.size
  const heapBefore = await heaps.sumOf([gateway.pid])
  // These mails only inform the user. They contain no code and are valid for a day.
  await database.query(
    `insert into mails (user_id, kind, address, due_at, expires_at, created_at)
     select (select min(id) from users), 'password_changed', 'queued-' || i || '@drill.test', now(), now() + interval '1 day', now()
       from generate_series(1, $1::integer) i`,
    [queued],
  )
  const begun = performance.now()
  const { growth } = await peakDuring(gateway.pid, () => untilReceived(others, before + queued))
  const ours = queued / ((performance.now() - begun) / 1_000)
  for (let waited = 0; waited < 20_000; waited += 200) {
    const { rows } = await database.query("select 1 from mails where status = 'pending' limit 1")
    if (rows.length === 0) break
    await sleep(200)
  }
  const heapGrowth = (await heaps.sumOf([gateway.pid])) - heapBefore
  const { mails } = await others.received()
  const more = [...mails].filter(([to, times]) => to.startsWith('queued-') && times > 1).length
  const { rows } = await database.query<{ status: string; n: number }>(
    "select status, count(*)::integer as n from mails where address like 'queued-%' group by 1",
  )
  expect(
    `${queued} queued mails arrive once each`,
    mails.size === before + queued && more === 0 && rows.length === 1 && rows[0]?.status === 'sent',
    `${mails.size - before} arrived, ${more} more than once; ${rows.map(({ status, n }) => `${n} ${status}`)}`,
  )
  expect(
    'memory grows by less than 64 MiB meanwhile, and the heap after garbage collection by less than 6 MiB',
    growth < 64 && heapGrowth < 6 * MiB,
    `${growth.toFixed(0)} and ${(heapGrowth / MiB).toFixed(1)} MiB`,
  )
  const theirs = await nodemailerAlone(others.smtp)
  expect(
    'the rate is at least a quarter of the rate of nodemailer without a store',
    ours >= theirs / 4,
    `${ours.toFixed(0)} mails per second over 10 connections, nodemailer ${theirs.toFixed(0)}; ratio ${(ours / theirs).toFixed(2)}`,
  )
  say('the gateway leases and records each mail in Postgres')
}

async function untilReceived(others: SmtpAndWebhooks, count: number): Promise<void> {
  for (let waited = 0; waited < 1_800_000; waited += 250) {
    if ((await others.count()) >= count) return
    await sleep(250)
  }
  throw new Error('the mails did not arrive within 30 minutes')
}

/**
 * Uses nodemailer to send as many mails as the gateway sent, over the same number of connections.
 * @returns the number of mails per second
 */
async function nodemailerAlone(smtp: string): Promise<number> {
  const program = fileURLToPath(new URL('./send-by-nodemailer.js', import.meta.url))
  const child = fork(program, [smtp, String(queued)])
  const [seconds] = await once(child, 'message')
  return queued / seconds
}
