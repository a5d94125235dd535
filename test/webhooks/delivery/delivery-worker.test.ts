// Deliveries to real receivers over TLS, from a real store: sent, retried, abandoned, returned (CONTRACT §5).

import type { IncomingHttpHeaders, OutgoingHttpHeaders, RequestListener } from 'node:http'
import { Webhook, WebhookVerificationError } from 'standardwebhooks'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { OutboxWorker } from '../../../src/outbox/outbox-worker.ts'
import { type Database, StorageError } from '../../../src/storage/database.ts'
import { createResolver } from '../../../src/webhooks/address/resolve.ts'
import { createDeliveryStore } from '../../../src/webhooks/delivery/delivery-store.ts'
import { createDeliveryWorker } from '../../../src/webhooks/delivery/delivery-worker.ts'
import { createSender, type Send } from '../../../src/webhooks/sending/send.ts'
import { createWebhookSecrets } from '../../../src/webhooks/webhook-secret.ts'
import { first } from '../../support/certificates.ts'
import { type Receiver, startReceiver } from '../../support/receiver.ts'
import { describeOverSetups, eitherSetup } from '../../support/setups.ts'
import { type Stored, secret, storedIn } from './stored.ts'

interface Seen {
  headers: IncomingHttpHeaders
  body: string
  /** From `performance.now()`, in milliseconds. */
  at: number
}

interface Hook extends Receiver {
  readonly url: string
  readonly seen: Seen[]
  /** The response's status; undefined: never responds. */
  status: number | undefined
  fields: OutgoingHttpHeaders
}

const seconds = 1_000
const minutes = 60 * seconds
const hours = 60 * minutes

describeOverSetups('delivering', setup => {
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

  function start({
    timeout: timeoutMs = 10 * seconds,
    random = 0.5,
    over = database,
    send = senderOf(timeoutMs),
  } = {}) {
    const made = createDeliveryWorker({
      deliveries: createDeliveryStore(over),
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

  /** Waits until the only delivery matches. */
  const becomes = (row: object) =>
    vi.waitFor(async () => expect(await stored.rows()).toMatchObject([row]), { timeout: 5_000, interval: 10 })

  it('sends an alert with a signature that the package verifies, and notes that it arrived', async () => {
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

  it('finds by itself what another process stored, within about a second', async () => {
    start()
    const target = await hook(204)
    await stored.receiving(target.url)
    await stored.alert()
    await becomes({ status: 'delivered' })
  })

  it('tries ten times in about three days, with one id and body and a new signature, and then gives up', async () => {
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
      // Prunes no pending delivery, however short `webhooks.retention` is.
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

  it.each([
    [0, 4_500],
    [1, 5_500],
  ])('makes a delay a tenth shorter or longer at most (random %d)', async (random, delay) => {
    const target = await hook(503)
    await stored.receiving(target.url)
    await stored.alert()
    start({ random }).wake()
    await becomes({ attempts: 1, due_at: new Date(time + delay) })
  })

  describe('a receiver’s Retry-After', () => {
    /** The delay of the second attempt after this response, in milliseconds. */
    async function delayAfter(status: number, retryAfter: string | string[]): Promise<number> {
      // HTTP dates have whole seconds.
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

    // How it is read has nothing to do with the database; that it is kept, the tests below show on each.
    if (setup === eitherSetup()) {
      it.each([
        ['seconds', '7', 7 * seconds],
        ['a date', 'Tue, 03 Feb 2026 05:05:06 GMT', 1 * hours],
        ['a date in the form of RFC 850', 'Tuesday, 03-Feb-26 05:05:06 GMT', 1 * hours],
        ['a date in the form of asctime', 'Tue Feb  3 05:05:06 2026', 1 * hours],
        ['ten days', '864000', 24 * hours],
        ['a number of a hundred digits', '9'.repeat(100), 24 * hours],
        ['a date in ten years', 'Sun, 03 Feb 2036 05:05:06 GMT', 24 * hours],
      ])('is waited for where it is %s, up to a day', async (_, retryAfter, delay) => {
        expect(await delayAfter(429, retryAfter)).toBe(delay)
      })

      it.each([
        ['sooner than our own delay', '4'],
        ['0', '0'],
        ['a date that is over', 'Tue, 03 Feb 2026 04:05:05 GMT'],
        ['rubbish', 'soon'],
        ['empty', ''],
        ['negative', '-60'],
        ['no whole number', '60.5'],
        ['a number in another notation', '0x60'],
        ['a list', '60, 60'],
        ['a date in another notation', '2026-02-03T05:05:06Z'],
        ['a date that is none', 'Tue, 03 Feb 2026 25:05:06 GMT'],
        ['there twice', ['60', '60']],
      ])('changes nothing where it is %s', async (_, retryAfter) => {
        expect(await delayAfter(429, retryAfter)).toBe(5 * seconds)
      })

      it.each([301, 400, 404, 429, 500, 502, 503, 504])('counts beside any failure: %d', async status => {
        expect(await delayAfter(status, '60')).toBe(60 * seconds)
      })
    }

    it('is waited for and no less: the attempt comes then, and ends it', async () => {
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

    it('does not keep a delivery from ending: delivered by a 200, failed by a 410 and at the last attempt', async () => {
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
    })

    it('of one delivery holds up no other to the same receiver', async () => {
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
      await vi.waitFor(async () =>
        expect((await stored.rows()).map(({ status }) => status)).toEqual(['pending', 'delivered']),
      )
    })
  })

  it('makes one attempt of a delivery that an operator has tried again after it failed, whatever is left', async () => {
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

  describe('a secret that another took the place of, at the same URL', () => {
    const next = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD'
    const day = 24 * hours

    /** Which of the two secrets verify the last delivery with the package, and its signatures. */
    function verified({ seen }: Hook): { current: boolean; before: boolean; signatures: string[] } {
      const { headers, body } = seen.at(-1) as Seen
      vi.useFakeTimers({ toFake: ['Date'], now: Number(headers['webhook-timestamp']) * 1000 })
      const isBy = (key: string) => {
        try {
          new Webhook(key).verify(body, headers as Record<string, string>)
          return true
        } catch (error) {
          expect(error).toBeInstanceOf(WebhookVerificationError)
          return false
        }
      }
      try {
        const signatures = String(headers['webhook-signature']).split(' ')
        return { current: isBy(next), before: isBy(secret), signatures }
      } finally {
        vi.useRealTimers()
      }
    }

    async function deliverTo(target: Hook, id: number): Promise<void> {
      const count = target.seen.length
      await stored.alert(id)
      start().wake()
      await vi.waitFor(() => expect(target.seen).toHaveLength(count + 1))
      await Promise.all(running.splice(0).map(one => one.stop(1_000)))
    }

    it('signs second, for 24 hours, and then no more', async () => {
      const target = await hook(204)
      const id = await stored.receiving(target.url)
      await stored.webhook(id, target.url, next)
      for (const later of [0, day - 1]) {
        time += later
        await deliverTo(target, id)
        const { signatures, ...by } = verified(target)
        expect(by).toEqual({ current: true, before: true })
        expect(signatures).toHaveLength(2)
        const { headers, body } = target.seen.at(-1) as Seen
        const [sent, at] = [String(headers['webhook-id']), Number(headers['webhook-timestamp'])]
        const signedBy = (key: string) => new Webhook(key).sign(sent, new Date(at * 1000), body)
        expect(signatures).toEqual([signedBy(next), signedBy(secret)])
      }
      time += 1
      await deliverTo(target, id)
      expect(verified(target)).toMatchObject({
        current: true,
        before: false,
        signatures: [expect.any(String)],
      })
    })

    it('signs retries too, of what was emitted before it was replaced', async () => {
      const target = await hook(500)
      const id = await stored.receiving(target.url)
      await stored.alert(id)
      const made = start()
      made.wake()
      await becomes({ attempts: 1, response_status: 500 })
      await stored.webhook(id, target.url, next)
      time += 5 * seconds
      target.status = 200
      made.wake()
      await becomes({ status: 'delivered' })
      expect(verified(target)).toMatchObject({ current: true, before: true })
    })

    it('signs nothing where it cannot be read, and stops no delivery', async () => {
      const target = await hook(204)
      const id = await stored.receiving(target.url)
      await stored.webhook(id, target.url, next)
      await database.query(`update webhooks set secret_before = 'sealed.v1.AAAA'`)
      await deliverTo(target, id)
      expect(verified(target)).toMatchObject({
        current: true,
        before: false,
        signatures: [expect.any(String)],
      })
    })
  })

  it.each(setup === eitherSetup() ? [301, 302, 307, 308, 400, 401, 404, 429] : [302])(
    'takes %d for a failure, and follows nothing',
    async status => {
      const target = await hook(status)
      await stored.receiving(target.url)
      await stored.alert()
      start().wake()
      await becomes({
        status: 'pending',
        attempts: 1,
        response_status: status,
        due_at: new Date(time + 5_000),
      })
      expect(target.connections).toBe(1)
    },
  )

  it('takes silence for a failure, and says so in the log', async () => {
    const target = await hook(undefined)
    await stored.receiving(target.url)
    await stored.alert()
    start({ timeout: 200 }).wake()
    await becomes({ status: 'pending', response_status: null, error: expect.stringMatching(/^timeout: /) })
    await vi.waitFor(() => expect(target.open).toBe(0))
  })

  it('takes a closed port and a certificate that nobody vouches for alike', async () => {
    const target = await hook(200)
    await target.close()
    await stored.receiving(target.url)
    await stored.alert()
    start().wake()
    await becomes({ status: 'pending', error: expect.stringMatching(/^connection: .*ECONNREFUSED/) })
    await stored.empty()
    await stored.receiving((await hook(200)).url)
    await stored.alert()
    const resolve = createResolver({ allowPrivate: true })
    start({ send: createSender({ resolve, allowPrivate: true, timeoutMs: 1_000 }) }).wake()
    await becomes({ status: 'pending', error: expect.stringMatching(/^tls: /) })
  })

  it('delivers after a failure as soon as the receiver is well again', async () => {
    const target = await hook(500)
    await stored.receiving(target.url)
    await stored.alert()
    const made = start()
    made.wake()
    await becomes({ attempts: 1, response_status: 500 })
    target.status = 200
    time += 5 * seconds
    made.wake()
    await becomes({ status: 'delivered', attempts: 2, response_status: 200, finished_at: new Date(time) })
  })

  it('at a 410 removes the webhook, and what was pending for it', async () => {
    const target = await hook(410)
    const id = await stored.receiving(target.url)
    await stored.alert()
    time += 1
    start().wake()
    await becomes({ status: 'failed', attempts: 1, response_status: 410 })
    await vi.waitFor(async () =>
      expect(await database.query('select 1 from webhooks where user_id = $1', [id])).toEqual([]),
    )
    expect(await stored.alert(id)).toBe(0)
  })

  it('fails what was sealed under another key, and sends nothing', async () => {
    const target = await hook(200)
    await stored.receiving(target.url)
    await database.query(`update webhooks set secret = 'sealed.v1.AAAA'`)
    await stored.alert()
    start().wake()
    await becomes({ status: 'pending', attempts: 1, error: expect.stringMatching(/^secret: /) })
    expect(target.connections).toBe(0)
  })

  it('has no more than four under way to one receiver', async () => {
    const target = await hook(undefined)
    const id = await stored.receiving(target.url)
    for (let i = 0; i < 12; i += 1) await stored.alert(id)
    start().wake()
    await vi.waitFor(() => expect(target.seen).toHaveLength(4))
    await vi.waitFor(async () =>
      expect((await stored.rows()).filter(({ attempts }) => attempts > 0)).toHaveLength(4),
    )
    expect(target.connections).toBe(4)
  })

  it('30 receivers that hang hold up none of 30 others', async () => {
    const hanging = await Promise.all(Array.from({ length: 30 }, () => hook(undefined)))
    const well = await Promise.all(Array.from({ length: 30 }, () => hook(200)))
    const toHanging: number[] = []
    for (const { url } of hanging) toHanging.push(await stored.receiving(url))
    const toWell: number[] = []
    for (const { url } of well) toWell.push(await stored.receiving(url))
    for (let i = 0; i < 4; i += 1) for (const id of toHanging) await stored.alert(id)
    // Queued after those: these wait until the others are found to hang, not for their timeouts.
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

    // The others still hang, for 20 s: no round waits for that. What else the machine does may hold up a round for a while.
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

  it('what a process had that is gone is taken up by another, when its lease has ended', async () => {
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
    // CONTRACT §5; and never while the first process may still be sending.
    expect(leaseEnds.getTime() - time).toBeLessThanOrEqual(timeout + 29 * seconds)
    expect(leaseEnds.getTime() - time).toBeGreaterThan(timeout + 5 * seconds)
    time = leaseEnds.getTime()
    start({ timeout }).wake()
    await vi.waitFor(() => expect(target.seen).toHaveLength(1))
    await becomes({ status: 'delivered', attempts: 2 })
    // The first process was only suspended and resumes: its outcome no longer counts.
    answer({ kind: 'answered', status: 500 })
    await Promise.all(running.splice(0).map(one => one.stop(1_000)))
    expect(await stored.rows()).toMatchObject([{ status: 'delivered', attempts: 2, response_status: 200 }])
  })

  it('several at once send each of 100 alerts once', async () => {
    const targets = await Promise.all(Array.from({ length: 5 }, () => hook(204)))
    for (let i = 0; i < 100; i += 1) await stored.receiving(targets[i % 5]?.url ?? '')
    await stored.alert()
    for (const made of [start(), start(), start()]) made.wake()
    await vi.waitFor(
      async () =>
        expect(new Set((await stored.rows()).map(({ status }) => status))).toEqual(new Set(['delivered'])),
      { timeout: 15_000 },
    )
    const ids = targets.flatMap(({ seen }) => seen.map(({ headers }) => headers['webhook-id']))
    expect([ids.length, new Set(ids).size]).toEqual([100, 100])
  })

  describe('stopping', () => {
    it('lets what is under way end, within the grace', async () => {
      const target = await hook(undefined)
      target.server.removeAllListeners('request')
      target.server.on('request', (_, response) => setTimeout(() => response.end(), 300))
      await stored.receiving(target.url)
      await stored.alert()
      const made = start()
      made.wake()
      await vi.waitFor(() => expect(target.connections).toBe(1))
      await made.stop(5_000)
      expect(await stored.rows()).toMatchObject([{ status: 'delivered', attempts: 1 }])
    })

    it('gives back what does not end in time, at once for the next', async () => {
      const target = await hook(undefined)
      await stored.receiving(target.url)
      await stored.alert()
      const made = start()
      made.wake()
      await vi.waitFor(() => expect(target.seen).toHaveLength(1))
      const begun = performance.now()
      await made.stop(100)
      expect(performance.now() - begun).toBeLessThan(2_000)
      expect(await stored.rows()).toMatchObject([{ status: 'pending', attempts: 0, due_at: new Date(time) }])
      await vi.waitFor(() => expect(target.open).toBe(0))
      target.status = 200
      start().wake()
      await becomes({ status: 'delivered', attempts: 1 })
    })

    it('gives back what it was about to take, too, and takes nothing more', async () => {
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

  it('a store that fails is told of once, and what is due is sent when it is back', async () => {
    let isAway = true
    const away = new StorageError('database: away', undefined, undefined)
    const shaky: Database = {
      ...database,
      query: (sql, values) => (isAway ? Promise.reject(away) : database.query(sql, values)),
    }
    const target = await hook(200)
    await stored.receiving(target.url)
    await stored.alert()
    const made = start({ over: shaky })
    for (let i = 0; i < 5; i += 1) {
      made.wake()
      await new Promise(go => setImmediate(go))
    }
    expect(errors).toEqual([away])
    isAway = false
    await becomes({ status: 'delivered' })
    isAway = true
    made.wake()
    await vi.waitFor(() => expect(errors).toEqual([away, away]))
  })

  it('what could not be noted is sent again when its lease has ended, with the same id', async () => {
    let isAway = false
    const shaky: Database = {
      ...database,
      query: (sql, values) =>
        isAway
          ? Promise.reject(new StorageError('database: away', undefined, undefined))
          : database.query(sql, values),
    }
    const target = await hook(200)
    target.server.prependListener('request', () => {
      isAway = true
    })
    await stored.receiving(target.url)
    await stored.alert()
    const made = start({ over: shaky })
    made.wake()
    await vi.waitFor(() => expect(errors).toHaveLength(1))
    target.server.removeAllListeners('request')
    target.server.on('request', (request, response) => {
      target.seen.push({ headers: request.headers, body: '', at: 0 })
      response.end()
    })
    isAway = false
    time += 25 * seconds
    made.wake()
    await becomes({ status: 'delivered', attempts: 2 })
    const ids = target.seen.map(({ headers }) => headers['webhook-id'])
    expect([ids.length, new Set(ids).size]).toEqual([2, 1])
  })
})
