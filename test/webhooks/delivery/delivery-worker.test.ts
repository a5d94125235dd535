// Tests the worker with a real store and real receivers over TLS: it sends, retries, drops and releases deliveries.

import type { IncomingHttpHeaders, OutgoingHttpHeaders, RequestListener } from 'node:http'
import { Webhook } from 'standardwebhooks'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { OutboxWorker } from '../../../src/outbox/outbox-worker.ts'
import type { Database } from '../../../src/storage/database.ts'
import { createResolver } from '../../../src/webhooks/address/resolve.ts'
import { createDeliveryStore } from '../../../src/webhooks/delivery/delivery-store.ts'
import { createDeliveryWorker } from '../../../src/webhooks/delivery/delivery-worker.ts'
import { createSender, type Send } from '../../../src/webhooks/sending/send.ts'
import { createWebhookSecrets } from '../../../src/webhooks/webhook-secret.ts'
import { first } from '../../support/certificates.ts'
import { builtInPlans } from '../../support/plans.ts'
import { type Receiver, startReceiver } from '../../support/receiver.ts'
import { describeOverSetups } from '../../support/setups.ts'
import { type Stored, secret, storedIn } from './stored.ts'

interface Seen {
  headers: IncomingHttpHeaders
  body: string
  /** The time of arrival: milliseconds from `performance.now()`. */
  at: number
}

interface Hook extends Receiver {
  readonly url: string
  readonly seen: Seen[]
  /** The status of the response. If undefined, the receiver never responds. */
  status: number | undefined
  fields: OutgoingHttpHeaders
}

const seconds = 1_000
const minutes = 60 * seconds
const hours = 60 * minutes

describeOverSetups('the delivery worker', setup => {
  let database: Database
  let stored: Stored
  let time: number
  const errors: unknown[] = []
  const outcomes = { delivered: 0, retried: 0, failed: 0 }
  const hooks: Hook[] = []
  const running: OutboxWorker[] = []
  beforeAll(async () => {
    database = await setup.openDatabase()
    stored = storedIn(database, () => time)
  })
  beforeEach(async () => {
    time = Date.now()
    errors.length = 0
    Object.assign(outcomes, { delivered: 0, retried: 0, failed: 0 })
    await stored.empty()
  })
  afterEach(async () => {
    await Promise.all(running.splice(0).map(one => one.stop(0)))
    await Promise.all(hooks.splice(0).map(hook => hook.close()))
  })
  afterAll(() => database.close())

  async function hook(status: number | undefined): Promise<Hook> {
    const seen: Seen[] = []
    const answer: RequestListener = async (request, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      seen.push({ headers: request.headers, body: Buffer.concat(chunks).toString(), at: performance.now() })
      if (made.status !== undefined)
        response.writeHead(made.status, { location: '/elsewhere', ...made.fields }).end()
    }
    const receiver = await startReceiver(first, answer, '127.0.0.1')
    const made: Hook = Object.assign(receiver, {
      url: `https://127.0.0.1:${receiver.port}/hook`,
      seen,
      status,
      fields: {},
    })
    hooks.push(made)
    return made
  }

  const senderOf = (timeoutMs: number) =>
    createSender({
      resolve: createResolver({ allowPrivate: true }),
      allowPrivate: true,
      timeoutMs,
      ca: first.cert,
    })

  function start({ timeout: timeoutMs = 10 * seconds, random = 0.5, send = senderOf(timeoutMs) } = {}) {
    const made = createDeliveryWorker({
      deliveries: createDeliveryStore(database, () => builtInPlans),
      secrets: createWebhookSecrets(undefined),
      sendSettings: () => ({ send, timeoutMs }),
      clock: { now: () => time },
      random: () => random,
      outcomes,
      onError: error => errors.push(error),
    })
    running.push(made)
    return made
  }

  /** Waits until the store contains exactly one delivery and it matches `row`. */
  const becomes = (row: object) =>
    expect.poll(() => stored.rows(), { timeout: 5_000, interval: 10 }).toMatchObject([row])

  it('sends an alert with a signature that the standardwebhooks package verifies, and records the delivery', async () => {
    const target = await hook(202)
    const id = await stored.receiving(target.url)
    await stored.alert(id, 'course.done', { title: 'Émigré' })
    start().wake()
    await becomes({ status: 'delivered', attempts: 1, response_status: 202, error: null })
    expect(target.seen).toHaveLength(1)
    expect(outcomes).toEqual({ delivered: 1, retried: 0, failed: 0 })
    const { headers, body } = target.seen[0] as Seen
    const at = new Date(time).toISOString()
    expect(body).toBe(`{"type":"course.done","timestamp":"${at}","data":{"title":"Émigré"}}`)
    expect(headers).toEqual({
      host: `127.0.0.1:${target.port}`,
      connection: 'close',
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(body)),
      'user-agent': 'peage',
      'webhook-id': expect.stringMatching(new RegExp(`^msg_[0-9a-f]{32}_${id}$`)),
      'webhook-timestamp': String(Math.floor(time / 1000)),
      'webhook-signature': expect.stringMatching(/^v1,/),
    })
    expect(new Webhook(secret).verify(body, headers as Record<string, string>)).toEqual(JSON.parse(body))
  })

  it('tries ten times in about three days, with the same ID and body but a new signature, and then gives up', async () => {
    const target = await hook(500)
    await stored.receiving(target.url)
    await stored.alert()
    const made = start()
    const delays = [
      5 * seconds,
      5 * minutes,
      30 * minutes,
      ...[2, 5, 10, 14, 20, 24].map(each => each * hours),
    ]
    for (const [index, delay] of delays.entries()) {
      made.wake()
      const dueAt = new Date(time + delay)
      await becomes({ status: 'pending', attempts: index + 1, response_status: 500, due_at: dueAt })
      time = dueAt.getTime()
      // A pending delivery is never pruned, even if `webhooks.retention` is shorter than the schedule.
      expect(await stored.deliveries.prune(new Date(time), 10)).toBe(0)
      expect(await stored.alerts.prune(new Date(time), 10)).toBe(0)
    }
    made.wake()
    await becomes({ status: 'failed', attempts: 10, response_status: 500, finished_at: new Date(time) })
    expect(outcomes).toEqual({ delivered: 0, retried: 9, failed: 1 })

    expect(target.seen).toHaveLength(10)
    const of = (name: string) => new Set(target.seen.map(({ headers }) => headers[name]))
    expect(of('webhook-id').size).toBe(1)
    expect(new Set(target.seen.map(({ body }) => body)).size).toBe(1)
    expect(of('webhook-timestamp').size).toBe(10)
    for (const { headers, body } of target.seen) {
      vi.useFakeTimers({ toFake: ['Date'], now: Number(headers['webhook-timestamp']) * 1000 })
      try {
        new Webhook(secret).verify(body, headers as Record<string, string>)
      } finally {
        vi.useRealTimers()
      }
    }
  })

  describe('a receiver’s Retry-After', () => {
    /**
     * Makes the receiver respond to the first attempt of a delivery with this status and Retry-After.
     * @returns the delay until the second attempt, in milliseconds
     */
    async function delayAfter(status: number, retryAfter: string | string[]): Promise<number> {
      // The clock is set to a whole second, because an HTTP date has no milliseconds.
      time = Date.parse('2026-02-03T04:05:06Z')
      const target = await hook(status)
      target.fields = { 'Retry-After': retryAfter }
      await stored.receiving(target.url)
      await stored.alert()
      start().wake()
      await becomes({ status: 'pending', attempts: 1, response_status: status })
      const [row] = await stored.rows()
      return (row?.due_at.getTime() ?? 0) - time
    }

    it('is used after a 500 too, but is ignored if the response contains it twice', async () => {
      expect(await delayAfter(429, ['60', '60'])).toBe(5 * seconds)
      await stored.empty()
      expect(await delayAfter(500, '60')).toBe(60 * seconds)
    })

    it('delays the next attempt by exactly the requested time; a successful attempt then ends the delivery', async () => {
      const delay = await delayAfter(429, '60')
      expect(delay).toBe(60 * seconds)
      const target = hooks[0] as Hook
      target.status = 200
      time += delay - 1
      const [made] = running
      made?.wake()
      await made?.stop(5_000)
      expect(target.seen).toHaveLength(1)
      time += 1
      start().wake()
      await becomes({ status: 'delivered', attempts: 2, response_status: 200 })
      expect(target.seen).toHaveLength(2)
    })

    it('is ignored after a 200, a 410 or the last attempt, which end the delivery', async () => {
      const target = await hook(200)
      target.fields = { 'retry-after': '60' }
      const id = await stored.receiving(target.url)
      await stored.alert()
      const made = start()
      made.wake()
      await becomes({ status: 'delivered', attempts: 1, due_at: expect.any(Date) })
      await database.query('delete from webhook_deliveries')
      await stored.alert(id)
      await database.query('update webhook_deliveries set attempts = 9')
      target.status = 429
      made.wake()
      await becomes({ status: 'failed', attempts: 10, response_status: 429 })
      await database.query('delete from webhook_deliveries')
      await stored.alert(id)
      target.status = 410
      made.wake()
      await becomes({ status: 'failed', attempts: 1, response_status: 410 })
      await expect.poll(() => database.query('select 1 from webhooks')).toEqual([])
    })

    it('delays only the delivery that received it, and no other delivery to the same receiver', async () => {
      const target = await hook(429)
      target.fields = { 'retry-after': '3600' }
      const id = await stored.receiving(target.url)
      await stored.alert(id)
      const made = start()
      made.wake()
      await becomes({ attempts: 1, due_at: new Date(time + hours) })
      target.status = 200
      await stored.alert(id)
      made.wake()
      await expect
        .poll(async () => (await stored.rows()).map(({ status }) => status))
        .toEqual(['pending', 'delivered'])
    })
  })

  it('makes only one attempt for a failed delivery that an operator retries', async () => {
    const target = await hook(410)
    const id = await stored.receiving(target.url)
    await stored.alert(id)
    const made = start()
    made.wake()
    await becomes({ status: 'failed', attempts: 1, response_status: 410 })
    await stored.webhook(id, target.url)
    target.status = 500
    const retry = async () => {
      const [row] = await stored.rows()
      expect(await stored.deliveries.retryNow(row?.id ?? 0, new Date(time), () => async () => {})).toBe('due')
      made.wake()
    }
    await retry()
    await becomes({ status: 'failed', attempts: 2, response_status: 500 })
    target.status = 200
    await retry()
    await becomes({ status: 'delivered', attempts: 3, response_status: 200 })
    expect(new Set(target.seen.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
  })

  it('adds a signature with the previous secret after a change of the secret, unless the previous secret cannot be decrypted', async () => {
    const next = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD'
    const target = await hook(204)
    const id = await stored.receiving(target.url)
    await stored.webhook(id, target.url, next)
    const made = start()
    for (const signing of [[next, secret], [next]]) {
      await stored.alert(id)
      made.wake()
      await expect.poll(async () => (await stored.rows()).at(-1)?.status).toBe('delivered')
      const { headers, body } = target.seen.at(-1) as Seen
      const [sent, at] = [String(headers['webhook-id']), Number(headers['webhook-timestamp'])]
      const signatures = signing.map(key => new Webhook(key).sign(sent, new Date(at * 1000), body))
      expect(headers['webhook-signature']).toBe(signatures.join(' '))
      await database.query(`update webhooks set secret_before = 'sealed.v1.AAAA'`)
    }
  })

  it('treats a redirect as a failed attempt and does not follow it; the next delay is at most 10 % longer than scheduled', async () => {
    const target = await hook(302)
    await stored.receiving(target.url)
    await stored.alert()
    start({ random: 1 }).wake()
    await becomes({ status: 'pending', attempts: 1, response_status: 302, due_at: new Date(time + 5_500) })
    expect(target.connections).toBe(1)
  })

  it('fails an attempt, and sends nothing, if the secret was encrypted with another key', async () => {
    const target = await hook(200)
    await stored.receiving(target.url)
    await database.query(`update webhooks set secret = 'sealed.v1.AAAA'`)
    await stored.alert()
    start().wake()
    await becomes({ status: 'pending', attempts: 1, error: expect.stringMatching(/^secret: /) })
    expect(target.connections).toBe(0)
  })

  it('sends at most four deliveries to one receiver at the same time', async () => {
    const target = await hook(undefined)
    const id = await stored.receiving(target.url)
    for (let i = 0; i < 12; i += 1) await stored.alert(id)
    start().wake()
    await expect.poll(() => target.seen).toHaveLength(4)
    await expect
      .poll(async () => (await stored.rows()).filter(({ attempts }) => attempts > 0))
      .toHaveLength(4)
    expect(target.connections).toBe(4)
  })

  it('delivers to 30 receivers without delay while 30 other receivers hang', async () => {
    const hanging = await Promise.all(Array.from({ length: 30 }, () => hook(undefined)))
    const well = await Promise.all(Array.from({ length: 30 }, () => hook(200)))
    const toHanging: number[] = []
    for (const { url } of hanging) toHanging.push(await stored.receiving(url))
    const toWell: number[] = []
    for (const { url } of well) toWell.push(await stored.receiving(url))
    for (let i = 0; i < 4; i += 1) for (const id of toHanging) await stored.alert(id)
    // The alerts to the other receivers are queued last. They wait until the hanging receivers count as slow, but not
    // until the attempts at the hanging receivers time out.
    time += 1
    for (const id of toWell) await stored.alert(id)
    const made = start({ timeout: 20 * seconds })
    const begun = performance.now()
    made.wake()
    const all = (hooks: Hook[], count: number) => () => {
      for (const { seen } of hooks) expect(seen).toHaveLength(count)
    }
    await vi.waitFor(all(well, 1), { timeout: 10_000, interval: 10 })
    expect(performance.now() - begun).toBeLessThan(8_000)
    await vi.waitFor(all(hanging, 4), { timeout: 10_000, interval: 10 })

    // The hanging receivers do not respond for 20 s, but no round waits for them. Only the fastest round must take less
    // than 1 s, because a busy machine may delay the other rounds.
    const slowestOfRounds: number[] = []
    for (let round = 2; round < 5; round += 1) {
      time += 1
      for (const id of toWell) await stored.alert(id)
      const emitted = performance.now()
      made.wake()
      await vi.waitFor(all(well, round), { timeout: 5_000, interval: 10 })
      slowestOfRounds.push(Math.max(...well.map(({ seen }) => (seen.at(-1)?.at ?? Infinity) - emitted)))
    }
    expect(Math.min(...slowestOfRounds)).toBeLessThan(1_000)
    for (const { open } of hanging) expect(open).toBe(4)
    expect(outcomes).toMatchObject({ retried: 0, failed: 0 })
    await made.stop(0)
  }, 60_000)

  it('takes over the delivery of a dead process when the lease of this process has ended', async () => {
    const target = await hook(200)
    await stored.receiving(target.url)
    await stored.alert()
    let answer: (outcome: Awaited<ReturnType<Send>>) => void = () => {}
    const frozen: Send = () =>
      new Promise(resolve => {
        answer = resolve
      })
    const timeout = 10 * seconds
    start({ send: frozen, timeout }).wake()
    await becomes({ attempts: 1 })
    const [{ due_at: leaseEnds } = { due_at: new Date(0) }] = await stored.rows()
    // The lease must last longer than an attempt. Otherwise, both processes could send at the same time.
    expect(leaseEnds.getTime() - time).toBeLessThanOrEqual(timeout + 29 * seconds)
    expect(leaseEnds.getTime() - time).toBeGreaterThan(timeout + 5 * seconds)
    time = leaseEnds.getTime()
    start({ timeout }).wake()
    await expect.poll(() => target.seen).toHaveLength(1)
    await becomes({ status: 'delivered', attempts: 2 })
    // The first process was only suspended. When it resumes, the outcome of its attempt must be ignored.
    answer({ kind: 'answered', status: 500 })
    await Promise.all(running.splice(0).map(one => one.stop(1_000)))
    expect(await stored.rows()).toMatchObject([{ status: 'delivered', attempts: 2, response_status: 200 }])
  })

  describe('when it stops', () => {
    it('returns unfinished deliveries to the store, where they are due at once', async () => {
      const target = await hook(undefined)
      await stored.receiving(target.url)
      await stored.alert()
      const made = start()
      made.wake()
      await expect.poll(() => target.seen).toHaveLength(1)
      const begun = performance.now()
      await made.stop(100)
      expect(performance.now() - begun).toBeLessThan(2_000)
      expect(await stored.rows()).toMatchObject([{ status: 'pending', attempts: 0, due_at: new Date(time) }])
      await expect.poll(() => target.open).toBe(0)
      target.status = 200
      start().wake()
      await becomes({ status: 'delivered', attempts: 1 })
    })

    it('returns deliveries that it is leasing at this moment, and leases no further deliveries', async () => {
      const target = await hook(undefined)
      const id = await stored.receiving(target.url)
      await stored.alert()
      const made = start()
      made.wake()
      await made.stop(0)
      expect(await stored.rows()).toMatchObject([{ status: 'pending', attempts: 0, due_at: new Date(time) }])
      await stored.alert(id)
      made.wake()
      await made.stop(0)
      expect((await stored.rows()).map(({ attempts }) => attempts)).toEqual([0, 0])
    })
  })
})
