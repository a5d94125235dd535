// An upstream with several targets distributes its requests over them. If a target fails, few requests fail.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { expectRefusal } from '../../security/invariants.ts'
import { ask, requestBytes } from '../../security/raw-client.ts'
import { call, newUser } from '../../support/client.ts'
import { startGateway, type TestGateway } from '../../support/gateway.ts'
import { type MortalUpstream, startMortal } from '../mortal-upstream.ts'

describe('several targets', () => {
  let one: MortalUpstream
  let two: MortalUpstream
  let gateway: TestGateway

  beforeAll(async () => {
    ;[one, two] = [await startMortal('one'), await startMortal('two')]
    gateway = await startGateway(
      `upstreams:
  app: { targets: ['${one.url}', '${two.url}'], timeouts: { connect: 500ms } }
  narrow: { targets: ['${one.url}', '${two.url}'], connections: 2, timeouts: { connect: 3s } }
  once: { targets: ['${one.url}', '${two.url}'], retries: 0 }
  impatient: { targets: ['${one.url}', '${two.url}'], timeouts: { response: 200ms } }
  single: { targets: ['${one.url}'] }
  split: { targets: ['${one.url}', '${two.url}', '${one.url}/'], split_by: user }
  twice: { targets: ['${one.url}', '${two.url}', '${one.url}/'] }
  weightless: { targets: [{ url: '${one.url}', weight: 0 }, { url: '${two.url}', weight: 0 }] }
  spare: { targets: ['http://127.0.0.1:1', { url: '${two.url}', weight: 0 }], timeouts: { connect: 500ms } }
  literal: { targets: ['${one.url.replace('127.0.0.1', '0.0.0.0')}'] }
  young: { targets: ['${one.url}'], connection_age: 200ms }
  ageless: { targets: ['${one.url}'], connection_age: 0 }
routes:
  - { name: split, path: /split, upstream: split, auth: optional }
  - { name: twice, path: /twice, upstream: twice, auth: none }
  - { name: weightless, path: /weightless, upstream: weightless, auth: none }
  - { name: spare, path: /spare, upstream: spare, auth: none }
  - { name: literal, path: /literal, upstream: literal, auth: none }
  - { name: young, path: /young, upstream: young, auth: none }
  - { name: ageless, path: /ageless, upstream: ageless, auth: none }
  - { name: app, path: /app/*, upstream: app, auth: none }
  - { name: narrow, path: /narrow, upstream: narrow, auth: none }
  - { name: once, path: /once, upstream: once, auth: none }
  - { name: impatient, path: /impatient, upstream: impatient, auth: none }
  - { name: single, path: /single, upstream: single, auth: none }
  - { name: counted, path: /counted, upstream: app, free_daily: true }
`,
      undefined,
      { server: ", trusted_proxies: ['127.0.0.0/8']" },
    )
  })
  beforeEach(() => {
    for (const target of [one, two]) {
      target.received.length = 0
      target.most = 0
      target.answer = (_, response) => response.end(target.name)
    }
  })
  afterAll(async () => {
    await gateway?.stop()
    await Promise.all([one?.kill(), two?.kill()])
  })

  const get = async (path = '/app/x') => (await call(gateway.url, 'GET', path)).text
  const counts = () => [one.received.length, two.received.length]
  const both = (answer: MortalUpstream['answer']) => {
    one.answer = answer
    two.answer = answer
  }

  it('each receive their own host in the Host header', async () => {
    await Promise.all([get(), get()])
    for (const target of [one, two]) {
      expect(target.received.map(({ headers }) => `http://${headers.host}`)).toEqual([target.url])
    }
  })

  it('have the sum of both weights if they are listed twice', async () => {
    const names: string[] = []
    for (let i = 0; i < 6; i++) names.push(await get('/twice'))
    expect(names.filter(name => name === 'one')).toHaveLength(4)
  })

  it('are never used if their weight is 0, even if no other target is available', async () => {
    expectRefusal(await ask(gateway.url, requestBytes('GET', '/weightless')), 'upstream_unavailable')
    expectRefusal(await ask(gateway.url, requestBytes('GET', '/spare')), 'upstream_unreachable')
    expect(counts()).toEqual([0, 0])
  })

  it('can have IP addresses that the gateway would not use if a name resolved to them', async () =>
    expect(await get('/literal')).toBe('one'))

  it('with `split_by: user` serve each user from one target, which `explain` shows', async () => {
    const seen = new Set<string>()
    // With 24 users, each target almost certainly gets one. The target that is listed twice gets more users.
    for (let people = 0; people < 24; people += 1) {
      const user = await newUser(gateway)
      const names = new Set<string>()
      for (let i = 0; i < 4; i++)
        names.add((await call(gateway.url, 'GET', '/split', { token: user.access })).text)
      expect(names.size).toBe(1)
      const [name = ''] = names
      seen.add(name)
      const { body } = await call(gateway.admin, 'POST', '/admin/v1/explain', {
        token: gateway.adminToken,
        body: { method: 'GET', path: '/split', as: { user_id: user.id } },
      })
      expect(body.upstream).toEqual({ name: 'split', url: `${name === 'one' ? one.url : two.url}/split` })
    }
    expect(seen.size).toBe(2)
  })

  it('with `split_by: user` serve each IPv4 address or IPv6 network of anonymous clients from one target', async () => {
    const of = async (address: string) =>
      (await call(gateway.url, 'GET', '/split', { headers: { 'x-forwarded-for': address } })).text
    const seen = new Set<string>()
    for (let host = 1; host <= 20; host += 1) {
      const name = await of(`192.0.2.${host}`)
      expect(await of(`192.0.2.${host}`)).toBe(name)
      seen.add(name)
      const network = `2001:db8:0:${host}`
      expect(await of(`${network}::1`)).toBe(await of(`${network}:ffff::2`))
    }
    expect(seen.size).toBe(2)
  })

  it('get no new requests on connections older than `connection_age`; requests in flight continue', async () => {
    const socketOf = async (path: string) => {
      await get(path)
      return one.received.at(-1)?.socket
    }
    const young = await socketOf('/young')
    one.answer = (request, response) => {
      if (request.url !== '/young') return response.end('one')
      response.write('begun ')
      setTimeout(() => response.end('ended'), 400)
    }
    expect(await get('/young')).toBe('begun ended')
    expect(one.received.at(-1)?.socket).toBe(young)
    const ageless = await socketOf('/ageless')
    one.answer = (_, response) => response.end('one')
    expect(await socketOf('/young')).not.toBe(young)
    await expect.poll(() => young?.destroyed).toBe(true)
    expect(await socketOf('/ageless')).toBe(ageless)
  })

  it('each have a connection limit; further requests wait for a free connection of any target', async () => {
    both((_, response) => setTimeout(() => response.end(), 250))
    const answers = await Promise.all(Array.from({ length: 12 }, () => call(gateway.url, 'GET', '/narrow')))
    expect(answers.every(({ status }) => status === 200)).toBe(true)
    expect([one.most, two.most]).toEqual([2, 2])
  })

  it('serve every idempotent request when one target is killed under load; the target is used again when it runs again', async () => {
    both((_, response) => setTimeout(() => response.end(), 5))
    const statuses: number[] = []
    let isOver = false
    const load = Array.from({ length: 16 }, async (_, index) => {
      while (!isOver) {
        const method = ['GET', 'HEAD', 'DELETE', 'OPTIONS'][index % 4] as string
        statuses.push((await call(gateway.url, method, '/app/x')).status)
      }
    })
    // The time limit of this test is long, because the machine may be busy. The test checks failures, not durations.
    try {
      await expect.poll(() => two.received.length).toBeGreaterThan(50)
      await two.kill()
      const before = one.received.length
      await expect.poll(() => one.received.length).toBeGreaterThan(before + 200)
      await two.revive()
      const known = two.received.length
      await expect.poll(() => two.received.length).toBeGreaterThan(known + 50)
    } finally {
      isOver = true
      await Promise.all(load)
    }
    expect(statuses.length).toBeGreaterThan(300)
    expect(statuses.filter(status => status !== 200)).toEqual([])
  }, 30_000)

  it('cause a 502, never a 503, while all of them are down; they receive requests again as soon as they run', async () => {
    await Promise.all([one.kill(), two.kill()])
    for (let i = 0; i < 4; i++) {
      expectRefusal(await ask(gateway.url, requestBytes('GET', '/app/x')), 'upstream_unreachable')
    }
    await Promise.all([one.revive(), two.revive()])
    expect(['one', 'two']).toContain(await get())
    await expect
      .poll(async () => [await get(), await get()].sort(), { timeout: 5_000 })
      .toEqual(['one', 'two'])
  })

  describe('a request', () => {
    const reset: MortalUpstream['answer'] = (_, response) => response.socket?.destroy()

    it('is sent once more, to the other target, if it gets no response', async () => {
      both(reset)
      expectRefusal(await ask(gateway.url, requestBytes('GET', '/app/x')), 'upstream_unreachable')
      expect(counts()).toEqual([1, 1])
    })

    it('is sent to the other target, whatever its method, if the first target accepts no connection', async () => {
      await one.kill()
      try {
        for (let i = 0; i < 4; i++) {
          const answer = await call(gateway.url, 'POST', '/app/x', { body: 'once' })
          expect([answer.status, answer.text]).toEqual([200, 'two'])
        }
        expect(two.received).toHaveLength(4)
      } finally {
        await one.revive()
      }
    })

    it('is never sent twice if its method is POST', async () => {
      both(reset)
      for (const body of ['', 'five!']) {
        const bytes = requestBytes('POST', '/app/x', [`Content-Length: ${body.length}`], body)
        expectRefusal(await ask(gateway.url, bytes), 'upstream_unreachable')
      }
      expect(one.received.length + two.received.length).toBe(2)
    })

    it('is not sent to a second target if a part of its body was sent to the first target', async () => {
      both(reset)
      const bytes = requestBytes('PUT', '/app/x', ['Content-Length: 5'], 'five!')
      expectRefusal(await ask(gateway.url, bytes), 'upstream_unreachable')
      expect(one.received.length + two.received.length).toBe(1)
    })

    it('is sent with its complete body to the other target if the first target accepts no connection', async () => {
      await one.kill()
      const bodies: string[] = []
      two.answer = async (request, response) => {
        for await (const chunk of request) bodies.push(String(chunk))
        response.end()
      }
      for (let i = 0; i < 3; i++) {
        expect((await call(gateway.url, 'PUT', '/app/x', { body: 'all of it' })).status).toBe(200)
      }
      expect(bodies).toEqual(['all of it', 'all of it', 'all of it'])
      await one.revive()
    })

    it('is not sent again after a timeout', async () => {
      both(() => {})
      expectRefusal(await ask(gateway.url, requestBytes('GET', '/impatient')), 'upstream_timeout')
      expect(one.received.length + two.received.length).toBe(1)
    })

    it('is sent only once if `retries` is 0', async () => {
      both(reset)
      expectRefusal(await ask(gateway.url, requestBytes('GET', '/once')), 'upstream_unreachable')
      expect(one.received.length + two.received.length).toBe(1)
    })

    it('counts as one use when it is retried', async () => {
      const user = await newUser(gateway)
      one.answer = reset
      two.answer = reset
      const counted = () => call(gateway.url, 'GET', '/counted', { token: user.access })
      expect((await counted()).status).toBe(502)
      expect(counts()).toEqual([1, 1])
      expect(await gateway.sql('select daily_usage from users where id = $1', [user.id])).toEqual([
        { daily_usage: 1 },
      ])
      expect((await counted()).status).toBe(429)
    })

    it('is sent again on a new connection if the upstream closes the idle connection', async () => {
      expect(await get('/single')).toBe('one')
      const [first] = one.received
      // The upstream closes the connection just when the next request arrives. An idle timeout can do this too.
      one.answer = (request, response) => {
        if (request.socket === first?.socket) request.socket.destroy()
        else response.end('afresh')
      }
      expect(await get('/single')).toBe('afresh')
      expect(one.received.length).toBe(3)
    })
  })
})
