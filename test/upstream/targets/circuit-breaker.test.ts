// A circuit breaker stops requests to a failing target, so that clients get a refusal without waiting.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { createCircuitBreaker } from '../../../src/upstream/targets/circuit-breaker.ts'
import { expectRefusal } from '../../security/invariants.ts'
import { ask, type RawAnswer, RawConnection, requestBytes } from '../../security/raw-client.ts'
import { call, newUser } from '../../support/client.ts'
import { startGateway, type TestGateway } from '../../support/gateway.ts'
import { type MortalUpstream, startMortal } from '../mortal-upstream.ts'

/** Options of polls. The timeout is long, because the machine may be busy. */
const patiently = { timeout: 10_000, interval: 20 }

const reset: MortalUpstream['answer'] = (_, response) => response.socket?.destroy()

describe('a circuit breaker', () => {
  let one: MortalUpstream
  let two: MortalUpstream
  let gateway: TestGateway

  // Each test uses an upstream of its own, so its breaker is closed when the test starts.
  const fresh = Array.from({ length: 18 }, (_, index) => `app${index}`)
  let app = ''

  beforeAll(async () => {
    ;[one, two] = [await startMortal('one'), await startMortal('two')]
    const breaker = 'retries: 0, circuit_breaker: { failures: 50%, of_at_least: 6, open_for: 1s }'
    gateway = await startGateway(`upstreams:
${fresh.map(name => `  ${name}: { targets: ['${one.url}'], ${breaker} }`).join('\n')}
  slow: { targets: ['${one.url}'], timeouts: { response: 100ms }, ${breaker} }
  pair: { targets: ['${one.url}', '${two.url}'], ${breaker} }
routes:
${fresh.map(name => `  - { name: ${name}, path: /${name}, upstream: ${name}, auth: none }`).join('\n')}
  - { name: slow, path: /slow, upstream: slow, auth: none }
  - { name: pair, path: /pair, upstream: pair, auth: none }
  - { name: counted, path: /counted, upstream: ${fresh[0]}, free_daily: true }
`)
  })
  beforeEach(() => {
    app = `/${fresh.shift()}`
    for (const target of [one, two]) {
      target.received.length = 0
      target.answer = (_, response) => response.end(target.name)
    }
  })
  afterAll(async () => {
    await gateway?.stop()
    await Promise.all([one?.kill(), two?.kill()])
  })

  const get = (path = app) => ask(gateway.url, requestBytes('GET', path))
  async function open(): Promise<void> {
    one.answer = reset
    for (let i = 0; i < 6; i++) expectRefusal(await get(), 'upstream_unreachable')
    expectRefusal(await get(), 'upstream_unavailable')
    expect(one.received.length).toBe(6)
  }
  it('opens when enough requests were sent and half of them failed; further requests get a 503, and are neither forwarded nor counted as uses', async () => {
    const user = await newUser(gateway)
    for (let i = 0; i < 3; i++) expect((await get())?.status).toBe(200)
    one.answer = reset
    for (let i = 0; i < 3; i++) expectRefusal(await get(), 'upstream_unreachable')
    expectRefusal(await get(), 'upstream_unavailable')
    const refused = await call(gateway.url, 'GET', '/counted', { token: user.access })
    expect([refused.status, refused.headers.get('x-peage-error')]).toEqual([503, 'upstream_unavailable'])
    expect(one.received.length).toBe(6)
    expect(await gateway.sql('select daily_usage from users where id = $1', [user.id])).toEqual([
      { daily_usage: 0 },
    ])
  })

  it('stays closed if fewer than half of the requests fail', async () => {
    for (let i = 0; i < 4; i++) expect((await get())?.status).toBe(200)
    one.answer = reset
    for (let i = 0; i < 3; i++) expectRefusal(await get(), 'upstream_unreachable')
    one.answer = (_, response) => response.end('back')
    expect((await get())?.status).toBe(200)
  })

  it('closes when a request succeeds after `open_for`', async () => {
    await open()
    one.answer = (_, response) => response.end('back')
    await expect.poll(async () => (await get())?.status, patiently).toBe(200)
    // When the breaker closes, it counts from zero again, so a single failure does not open it.
    one.answer = reset
    expectRefusal(await get(), 'upstream_unreachable')
    one.answer = (_, response) => response.end('back')
    expect((await get())?.status).toBe(200)
  })

  it('lets one request through as a probe after `open_for`, and opens again if the probe fails', async () => {
    await open()
    let fail: () => void = () => {}
    one.answer = (_, response) => {
      fail = () => response.socket?.destroy()
    }
    const polling = expect.poll(() => {
      void get()
      return one.received.length
    }, patiently)
    await polling.toBe(7)
    const others = await Promise.all(Array.from({ length: 10 }, () => get()))
    for (const answer of others) expectRefusal(answer, 'upstream_unavailable')
    fail()
    await expect
      .poll(
        () =>
          gateway.log.filter(line => line.includes(`"path":"${app}"`) && line.includes('"status":502'))
            .length,
      )
      .toBe(7)
    expectRefusal(await get(), 'upstream_unavailable')
    expect(one.received.length).toBe(7)
  })

  it('lets the next request through as a probe if the client of the first probe leaves', async () => {
    await open()
    one.answer = () => {}
    const leaving = new RawConnection(gateway.url)
    await expect
      .poll(() => {
        leaving.write(requestBytes('GET', app))
        return one.received.length
      }, patiently)
      .toBe(7)
    leaving.close()
    one.answer = (_, response) => response.end('back')
    // If the probe still counted as running, the breaker would refuse requests for longer than this timeout.
    await expect.poll(async () => (await get())?.status, { timeout: 900, interval: 20 }).toBe(200)
  })

  it('does not open because of clients that leave or responses with a 500', async () => {
    one.answer = (_, response) => response.writeHead(500).end()
    for (let i = 0; i < 12; i++) expect((await get())?.status).toBe(500)
    one.answer = () => {}
    for (let i = 0; i < 12; i++) {
      const before = one.received.length
      const leaving = new RawConnection(gateway.url)
      leaving.write(requestBytes('GET', app))
      await expect.poll(() => one.received.length, patiently).toBe(before + 1)
      leaving.close()
    }
    one.answer = (_, response) => response.end('well')
    expect((await get())?.body.toString()).toBe('well')
  })

  /** Ways in which a client can make its own requests fail. In each case, the client gets a 502. */
  const provoked: [string, MortalUpstream['answer'], () => Promise<unknown>][] = [
    ['an upload that stalls until the target ends it', reset, () => stall()],
    [
      'a response that repeats too much of the request',
      (_, response) => response.writeHead(302, { location: `/?${'%7B'.repeat(7_000)}` }).end(),
      () => get('/pair'),
    ],
    [
      'a response that repeats an invalid character of the request',
      (_, response) => response.socket?.write('HTTP/1.1 302 Found\r\nLocation: /?\0\r\n\r\n'),
      () => get('/pair'),
    ],
  ]
  const stall = async (path = '/pair') => {
    const connection = new RawConnection(gateway.url)
    connection.write(requestBytes('POST', path, ['Content-Length: 100000'], 'a'))
    const answer = await connection.answer()
    connection.close()
    return answer
  }

  it.each(provoked)('stays closed after %s, and the target still gets requests', async (_, answer, ask) => {
    one.answer = answer
    two.answer = answer
    for (let i = 0; i < 24; i++) expectRefusal((await ask()) as RawAnswer, 'upstream_unreachable')
    for (const target of [one, two]) target.answer = (_, response) => response.end(target.name)
    const served = await Promise.all(Array.from({ length: 6 }, () => get('/pair')))
    expect(served.map(response => response?.body.toString()).sort()).toEqual([
      ...Array(3).fill('one'),
      ...Array(3).fill('two'),
    ])
  })

  it.each<[string, MortalUpstream['answer'], string?]>([
    ['a target that speaks no HTTP', (_, response) => response.socket?.end('SSH-2.0-OpenSSH_9.6\r\n')],
    [
      'a response that breaks off within its head',
      (_, response) => response.socket?.end('HTTP/1.1 200 OK\r\nContent-Le'),
    ],
    [
      'a target that closes without a response to an upload',
      (request, response) => request.resume().on('end', () => response.socket?.destroy()),
      'a'.repeat(100_000),
    ],
  ])('opens after failures because of %s', async (_, answer, body = '') => {
    one.answer = answer
    const lines = [`Content-Length: ${body.length}`]
    const send = () => ask(gateway.url, requestBytes('POST', app, lines, body))
    for (let i = 0; i < 6; i++) expectRefusal(await send(), 'upstream_unreachable')
    expectRefusal(await send(), 'upstream_unavailable')
  })

  it('opens after timeouts', async () => {
    one.answer = () => {}
    for (let i = 0; i < 6; i++) expectRefusal(await get('/slow'), 'upstream_timeout')
    expectRefusal(await get('/slow'), 'upstream_unavailable')
  })

  it('stops only the requests to its own target', async () => {
    one.answer = reset
    for (let i = 0; i < 14; i++) await get('/pair')
    for (let i = 0; i < 6; i++) expect((await get('/pair'))?.body.toString()).toBe('two')
    one.answer = (_, response) => response.end('one')
    await expect.poll(async () => String((await get('/pair'))?.body), patiently).toBe('one')
  })
})

describe('the counts of a circuit breaker', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
  afterEach(() => void vi.useRealTimers())

  const openFor = 2_000
  const start = () => createCircuitBreaker({ failures: 50, of_at_least: 4, open_for: openFor })
  const fail = ({ beginAttempt }: ReturnType<typeof start>) => beginAttempt()('unreachable')

  it('cover the last ten seconds', () => {
    const breaker = start()
    for (let i = 0; i < 3; i++) fail(breaker)
    vi.advanceTimersByTime(10_000)
    for (let i = 0; i < 3; i++) fail(breaker)
    expect(breaker.state()).toBe('closed')
    vi.advanceTimersByTime(8_000)
    fail(breaker)
    expect(breaker.state()).toBe('open')
  })

  it('include the requests in flight, as requests that did not fail', () => {
    const breaker = start()
    for (let i = 0; i < 8; i++) breaker.beginAttempt()
    for (let i = 0; i < 7; i++) fail(breaker)
    expect(breaker.state()).toBe('closed')
    fail(breaker)
    expect(breaker.state()).toBe('open')
  })

  it('do not prevent another probe if a probe has not ended within `open_for`', () => {
    const breaker = start()
    for (let i = 0; i < 4; i++) fail(breaker)
    vi.advanceTimersByTime(openFor)
    expect(breaker.allows()).toBe(true)
    breaker.beginAttempt()
    expect([breaker.allows(), breaker.state()]).toEqual([false, 'half_open'])
    vi.advanceTimersByTime(openFor)
    expect(breaker.allows()).toBe(true)
    breaker.beginAttempt()('answered')
    expect(breaker.state()).toBe('closed')
  })

  it('start again at zero when the breaker closes, and ignore requests that were sent before it closed', () => {
    const breaker = start()
    const late = Array.from({ length: 4 }, () => breaker.beginAttempt())
    for (let i = 0; i < 4; i++) fail(breaker)
    expect(breaker.state()).toBe('open')
    vi.advanceTimersByTime(openFor)
    expect(breaker.state()).toBe('half_open')
    late.pop()?.('silent')
    late.pop()?.('answered')
    expect(breaker.state()).toBe('half_open')
    breaker.beginAttempt()('answered')
    for (const endAttempt of late) endAttempt('silent')
    for (let i = 0; i < 3; i++) fail(breaker)
    expect(breaker.state()).toBe('closed')
    fail(breaker)
    expect(breaker.state()).toBe('open')
  })
})
