// Sends events to a real service over HTTP and TLS. Events are signed, arrive in order and are retried after failures.

import { createServer, type IncomingHttpHeaders, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import type { EventsConfig } from '../../../src/config/sections/schema.ts'
import type { Database } from '../../../src/storage/database.ts'
import { StorageError } from '../../../src/storage/database.ts'
import { createResolver } from '../../../src/webhooks/address/resolve.ts'
import { createDeliveryWorker } from '../../../src/webhooks/delivery/delivery-worker.ts'
import {
  createEventService,
  type EventService,
  type EventSettings,
} from '../../../src/webhooks/events/event-service.ts'
import { createSender } from '../../../src/webhooks/sending/send.ts'
import { createWebhookSecrets } from '../../../src/webhooks/webhook-secret.ts'
import { first } from '../../support/certificates.ts'
import { startReceiver } from '../../support/receiver.ts'
import { describeOverSetups } from '../../support/setups.ts'
import { storedIn } from '../delivery/stored.ts'
import { eventsIn, type StoredEvents } from './stored-events.ts'

interface Seen {
  headers: IncomingHttpHeaders
  body: string
}

/** A service that responds with the status code from `status`. If `status` returns undefined, it never responds. */
interface Service {
  readonly url: string
  readonly seen: Seen[]
  status: (type: string, userId: number) => number | undefined
  close(): Promise<void>
}

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const otherSecret = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD'

describeOverSetups('events', ({ openDatabase: open }) => {
  let database: Database
  let stored: StoredEvents
  let time: number
  const services: Service[] = []
  const running: EventService[] = []
  const errors: [string, unknown][] = []
  const problems: [string, number][] = []
  const outcomes = { delivered: 0, retried: 0, failed: 0 }
  beforeAll(async () => {
    database = await open()
    stored = eventsIn(database, () => time)
  })
  beforeEach(async () => {
    time = Date.now()
    errors.length = 0
    problems.length = 0
    Object.assign(outcomes, { delivered: 0, retried: 0, failed: 0 })
    await stored.empty()
  })
  afterEach(async () => {
    await Promise.all(running.splice(0).map(one => one.stop(0)))
    await Promise.all(services.splice(0).map(one => one.close()))
  })
  afterAll(() => database.close())

  async function service(isTls = false): Promise<Service> {
    const seen: Seen[] = []
    const answer: RequestListener = async (request, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const body = Buffer.concat(chunks).toString()
      const { type, userId } = JSON.parse(body)
      seen.push({ headers: request.headers, body })
      const status = made.status(type, userId)
      if (status !== undefined) response.writeHead(status).end()
    }
    const server = isTls ? await startReceiver(first, answer, '127.0.0.1') : await plain(answer)
    const url = `${isTls ? 'https' : 'http'}://127.0.0.1:${server.port}/events?of=peage`
    const made: Service = { url, seen, status: () => 204, close: server.close }
    services.push(made)
    return made
  }

  const settingsOf = (url: string, more: Partial<EventsConfig> = {}): EventSettings => ({
    events: { url, secret, types: ['user.created'], ...more },
    webhooks: { timeout: 10_000, retention: 30 * 86_400_000 },
  })

  function start(settings: EventSettings | (() => EventSettings), over = database): EventService {
    const made = createEventService(typeof settings === 'function' ? settings : () => settings, {
      database: over,
      clock: { now: () => time },
      random: () => 0.5,
      outcomes,
      onError: (what, error) => errors.push([what, error]),
      onNotTaken: (problem, failures) => problems.push([problem, failures]),
      ca: first.cert,
    })
    running.push(made)
    return made
  }

  const statuses = async () => (await stored.rows()).map(({ status }) => status)
  const become = (expected: string[]) =>
    expect.poll(() => statuses(), { timeout: 5_000, interval: 10 }).toEqual(expected)
  const typesSeen = ({ seen }: Service) => seen.map(({ body }) => JSON.parse(body).type)

  it.each([false, true])(
    'are sent with a signature that the standardwebhooks package verifies (TLS: %s)',
    async isTls => {
      const to = await service(isTls)
      await stored.change(await stored.user(), ['a'])
      start(settingsOf(to.url)).wake()
      await become(['delivered'])
      const [{ headers, body }] = to.seen as [Seen]
      new Webhook(secret).verify(body, headers as Record<string, string>)
      expect(headers).toMatchObject({
        'content-type': 'application/json',
        'user-agent': 'peage',
        'webhook-id': expect.stringMatching(/^msg_[0-9a-f]{32}$/),
        'webhook-timestamp': String(Math.floor(time / 1000)),
      })
      expect(outcomes).toEqual({ delivered: 1, retried: 0, failed: 0 })
    },
  )

  it('are retried on schedule with the same ID and body but a new signature, and delay the next event of the same user', async () => {
    const to = await service()
    to.status = () => 500
    await stored.change(await stored.user(), ['a', 'b'])
    const sender = start(settingsOf(to.url))
    for (const [made, delay] of [5_000, 300_000].entries()) {
      sender.wake()
      await expect
        .poll(() => stored.rows())
        .toMatchObject([
          { attempts: made + 1, response_status: 500, due_at: new Date(time + delay) },
          { attempts: 0, due_at: null },
        ])
      if (made === 1) await database.query('update events set attempts = 9 where attempts = 2')
      time += delay
    }
    to.status = type => (type === 'a' ? 500 : 204)
    sender.wake()
    await become(['failed', 'delivered'])
    expect(typesSeen(to)).toEqual(['a', 'a', 'a', 'b'])
    const ofFirst = to.seen.slice(0, 3)
    expect(new Set(ofFirst.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
    expect(new Set(ofFirst.map(({ headers }) => headers['webhook-signature'])).size).toBe(3)
    expect(outcomes).toEqual({ delivered: 1, retried: 2, failed: 1 })
  })

  it('arrive for each user in commit order, even if two replicas send them, attempts fail and a replica crashes', async () => {
    const to = await service()
    const tries = new Map<string, number>()
    // About every third attempt gets a 503 and is retried. About one event in seven gets a 410, which ends it.
    to.status = (type, userId) => {
      const count = (tries.get(`${userId} ${type}`) ?? 0) + 1
      tries.set(`${userId} ${type}`, count)
      if (Number(type) % 7 === 6) return 410
      return (Number(type) + userId + count) % 3 === 0 ? 503 : 204
    }
    const users = await Promise.all(Array.from({ length: 6 }, () => stored.user()))
    // Another replica leased these events and then died, so it never records their outcome.
    for (const user of users.slice(0, 3)) await stored.change(user, ['0'])
    expect(await stored.store.lease(10, new Date(time), new Date(time + 25_000))).toHaveLength(3)
    // The timeout makes the leases longer than the steps of the clock below. So the two replicas never send the same
    // event at the same time.
    const settings = { ...settingsOf(to.url), webhooks: { timeout: 600_000, retention: 30 * 86_400_000 } }
    const replicas = [start(settings), start(settings)]
    for (const user of users.slice(3)) await stored.change(user, ['0'])
    await Promise.all(
      users.map(async user => {
        for (let n = 1; n < 15; n += 1) await stored.change(user, [String(n)])
      }),
    )
    await vi.waitFor(
      async () => {
        time += 30_000
        for (const replica of replicas) replica.wake()
        expect(await statuses()).not.toContain('pending')
      },
      { timeout: 20_000, interval: 60 },
    )
    for (const user of users) {
      const of = to.seen.map(({ body }) => JSON.parse(body)).filter(({ userId }) => userId === user)
      const order = of.map(({ type }) => Number(type))
      expect(order).toEqual([...order].sort((a, b) => a - b))
      expect(new Set(order).size).toBe(15)
    }
    const sent = to.seen.map(({ headers, body }) => `${headers['webhook-id']} ${body}`)
    expect(new Set(sent).size).toBe(6 * 15)
    expect((await stored.rows()).filter(({ status }) => status === 'failed')).toHaveLength(6 * 2)
    expect(errors).toEqual([])
  })

  it('are sent to the current URL with the current secret, and wait while no URL is set', async () => {
    const [before, after] = [await service(), await service()]
    before.status = () => 500
    await stored.change(await stored.user(), ['a'])
    let settings: EventSettings = settingsOf(before.url)
    const sender = start(() => settings)
    sender.wake()
    await expect.poll(() => stored.rows()).toMatchObject([{ response_status: 500 }])
    settings = { ...settingsOf(''), events: undefined }
    time += 5_000
    sender.wake()
    await sender.stop(1_000)
    expect(before.seen).toHaveLength(1)
    start(settingsOf(after.url, { secret: otherSecret })).wake()
    await become(['delivered'])
    const [{ headers, body }] = after.seen as [Seen]
    new Webhook(otherSecret).verify(body, headers as Record<string, string>)
    expect(() => new Webhook(secret).verify(body, headers as Record<string, string>)).toThrow()
    expect(headers['webhook-id']).toBe(before.seen[0]?.headers['webhook-id'])
  })

  it('are retried after a failed connection or a redirect, and the reason is reported once a minute', async () => {
    const gone = await service()
    await services.pop()?.close()
    await stored.change(await stored.user(), ['a'])
    let settings = settingsOf(gone.url)
    const sender = start(() => settings)
    sender.wake()
    await expect
      .poll(() => stored.rows())
      .toMatchObject([{ status: 'pending', attempts: 1, error: expect.stringMatching(/^connection: /) }])
    const moved = await service()
    moved.status = () => 302
    settings = settingsOf(moved.url)
    time += 5_000
    sender.wake()
    await expect
      .poll(() => stored.rows())
      .toMatchObject([{ status: 'pending', attempts: 2, response_status: 302 }])
    expect(problems).toEqual([[expect.stringMatching(/^connection: /), 1]])
    time += 300_000
    sender.wake()
    // An attempt is counted when it starts, but its failure is reported when it ends. So the test waits for the report.
    await expect.poll(() => problems.slice(1)).toEqual([['status 302', 2]])
  })

  it('do not delay alerts if the event service hangs, even if more events are due than can be sent concurrently', async () => {
    const to = await service()
    to.status = () => undefined
    await Promise.all(Array.from({ length: 40 }, async () => stored.change(await stored.user(), ['a'])))
    start(settingsOf(to.url)).wake()
    await expect.poll(() => to.seen).toHaveLength(32)
    const alerts = storedIn(database, () => time)
    const hook = await service(true)
    const worker = createDeliveryWorker({
      deliveries: alerts.deliveries,
      secrets: createWebhookSecrets(undefined),
      sendSettings: () => ({
        timeoutMs: 10_000,
        send: createSender({
          resolve: createResolver({ allowPrivate: true }),
          allowPrivate: true,
          timeoutMs: 10_000,
          ca: first.cert,
        }),
      }),
      clock: { now: () => time },
      random: () => 0.5,
      outcomes: { delivered: 0, retried: 0, failed: 0 },
      onError: error => errors.push(['alerts', error]),
    })
    const begun = performance.now()
    await alerts.alert(await alerts.receiving(hook.url))
    worker.wake()
    await expect.poll(() => hook.seen).toHaveLength(1)
    expect(performance.now() - begun).toBeLessThan(1_000)
    await worker.stop(1_000)
    expect(to.seen).toHaveLength(32)
    expect(errors).toEqual([])
  })

  it('are returned to the store if their replica stops while it sends them, and another replica sends them at once', async () => {
    const to = await service()
    to.status = () => undefined
    await stored.change(await stored.user(), ['a', 'b'])
    const stopped = start(settingsOf(to.url))
    stopped.wake()
    await expect.poll(() => to.seen).toHaveLength(1)
    await stopped.stop(50)
    expect(await stored.rows()).toMatchObject([{ attempts: 0, due_at: new Date(time) }, { due_at: null }])
    to.status = () => 200
    start(settingsOf(to.url)).wake()
    await become(['delivered', 'delivered'])
    expect(typesSeen(to)).toEqual(['a', 'a', 'b'])
  })

  it('are paused while the database fails, and the error is reported', async () => {
    const query = () => Promise.reject(new StorageError('down', undefined, undefined))
    start(settingsOf('http://127.0.0.1:1/'), { ...database, query }).wake()
    await expect.poll(() => errors).toHaveLength(1)
    expect(errors[0]?.[0]).toBe('event sending paused because of a database error')
  })
})

async function plain(answer: RequestListener): Promise<{ port: number; close(): Promise<void> }> {
  const server: Server = createServer(answer)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
