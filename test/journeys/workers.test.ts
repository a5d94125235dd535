// With `server.workers`, several worker processes serve one port. The primary process replaces dead workers, and drains
// all workers at shutdown.
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { call, login } from '../support/client.ts'
import { adminToken, ask, type Crew, startCrew, writeCrewFile } from '../support/crew.ts'
import type { Stores } from '../support/gateway.ts'
import { routes } from '../support/journey.ts'
import { isAlive } from '../support/process-stat.ts'
import { runProgram } from '../support/program.ts'
import { scrape } from '../support/scrape.ts'
import { describeWithServices } from '../support/services.ts'
import { services } from '../support/setups.ts'
import { listen, startUpstream, type Upstream } from '../support/upstream.ts'

const password = 'correct horse battery'

function eventually<T>(read: () => T) {
  return expect.poll(read, { timeout: 15_000 })
}

describeWithServices('two workers', () => {
  let stores: Stores
  let upstream: Upstream
  let crew: Crew
  let isRunning = false
  beforeAll(async () => {
    stores = await services.open()
    upstream = await startUpstream()
  })
  beforeEach(() => {
    upstream.answer = undefined
    upstream.received.length = 0
  })
  afterEach(async ({ task }) => {
    // The next test reuses the crew (primary and workers), unless this test failed or ended the crew.
    const { exitCode, signalCode } = crew.child
    if (exitCode === null && signalCode === null && task.result?.state !== 'fail') return
    isRunning = false
    await crew.stop()
  })
  afterAll(async () => {
    await crew?.stop()
    await upstream?.close()
    if (stores !== undefined) await services.drop(stores)
  })
  /** Starts a crew if none is running. The tests share one crew, because a start takes seconds of CPU time. */
  const start = async () => {
    if (!isRunning) {
      // The response timeout is 20 s instead of 1 s. The tests delay responses, and on a busy machine a delay may
      // exceed 1 s.
      const heldBack = routes(upstream.url).replace('response: 1s', 'response: 20s')
      crew = await startCrew({ stores, routes: heldBack })
      isRunning = true
    }
    await eventually(() => crew.pids().length).toBe(2)
    await eventually(async () => (await crew.ready()).body.status).toBe('ok')
  }
  const get = (path: string, headers = {}) => ask(crew.url + path, headers)
  /** Sends at most 50 requests, until both workers have responded. @returns the workers that responded */
  async function bothServe(path: string, headers = {}): Promise<Set<string>> {
    const seen = new Set<string>()
    for (let tries = 0; seen.size < 2 && tries < 50; tries++) seen.add((await get(path, headers)).worker)
    return seen
  }
  async function newUser() {
    const email = `crew.${Math.random()}@example.com`
    const registered = await call(crew.url, 'POST', '/api/v1/auth/register', { body: { email, password } })
    return { id: Number(registered.body.user_id), ...(await login(crew.url, email, password)) }
  }
  /**
   * Makes the upstream hold back all responses.
   * @returns a growing list of functions; each function sends one of these responses
   */
  function holdAnswers() {
    const heldBack: (() => void)[] = []
    upstream.answer = (_request, response) => heldBack.push(() => response.end('late but whole'))
    return heldBack
  }
  const ready = () => crew.lines.filter(line => line.includes('"ready on '))

  it('share the requests to one address, and the log contains this address only once', async () => {
    await start()
    expect(crew.pids()).toHaveLength(2)
    const answers = await Promise.all(Array.from({ length: 40 }, () => get('/public/x')))
    expect(answers.map(({ status }) => status)).toEqual(Array(40).fill(200))
    expect(new Set(answers.map(({ worker }) => worker)).size).toBe(2)
    expect(ready()).toHaveLength(1)
    expect((await crew.ready()).body).toEqual({
      status: 'ok',
      checks: { postgres: 'ok', redis: 'ok', workers: 'ok' },
    })
  })

  it('together allow a free user only one use per day', async () => {
    await start()
    const { access } = await newUser()
    const authorization = { authorization: `Bearer ${access}` }
    expect((await bothServe('/any/x', authorization)).size).toBe(2)
    const uses = await Promise.all(Array.from({ length: 20 }, () => get('/courses/1', authorization)))
    expect(uses.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(uses.filter(({ status }) => status === 429)).toHaveLength(19)
  })

  it('both apply a change by an operator before the operator gets the response', async () => {
    await start()
    const { id, access } = await newUser()
    const authorization = { authorization: `Bearer ${access}` }
    await bothServe('/any/x', authorization)
    for (const [plan, status] of Array.from(
      { length: 10 },
      () =>
        [
          ['pro', 200],
          ['free', 403],
        ] as const,
    ).flat()) {
      await call(crew.admin, 'PATCH', `/admin/v1/users/${id}`, { token: adminToken, body: { plan } })
      const answers = await Promise.all([1, 2, 3, 4].map(() => get('/pro', authorization)))
      expect(answers.map(answer => answer.status)).toEqual(Array(4).fill(status))
      expect(new Set(answers.map(({ worker }) => worker)).size).toBe(2)
    }
  })

  it('both apply a change by a user before the user gets the response', async () => {
    await start()
    const { id, access } = await newUser()
    await call(crew.admin, 'PATCH', `/admin/v1/users/${id}`, { token: adminToken, body: { plan: 'pro' } })
    for (let round = 0; round < 10; round++) {
      const made = await ask(`${crew.url}/api/v1/user/api-token`, { authorization: `Bearer ${access}` }, '{}')
      const key = { 'x-api-key': JSON.parse(made.text).api_token }
      const before = await Promise.all([1, 2, 3, 4].map(() => get('/any/x', key)))
      await ask(`${crew.url}/api/v1/user/api-token`, { authorization: `Bearer ${access}` }, '{}')
      const after = await Promise.all([1, 2, 3, 4].map(() => get('/any/x', key)))
      expect([...before, ...after].map(({ status }) => status)).toEqual([
        ...Array(4).fill(200),
        ...Array(4).fill(401),
      ])
    }
  })

  it('lose only the requests in flight of a worker that is killed; then a new worker replaces the killed one', async () => {
    await start()
    const [killed = 0] = crew.pids()
    let going = true
    const failures: string[] = []
    let answered = 0
    const clients = Array.from({ length: 4 }, async () => {
      while (going) {
        const said = await get('/public/x').catch(error => error.code)
        if (typeof said === 'string') failures.push(said)
        else answered += 1
      }
    })
    try {
      await eventually(() => answered).toBeGreaterThan(50)
      process.kill(killed, 'SIGKILL')
      const later = answered + 200
      await eventually(() => answered).toBeGreaterThan(later)
      await eventually(async () => (await crew.ready()).body.status).toBe('ok')
    } finally {
      going = false
      await Promise.all(clients)
    }
    // Each of the four clients has at most one request in flight, so at most four requests can fail.
    expect(failures.length).toBeLessThanOrEqual(4)
    expect(crew.pids()).toHaveLength(2)
    expect(crew.pids()).not.toContain(killed)
    expect((await bothServe('/public/x')).size).toBe(2)
    const said = crew.lines
      .map(line => JSON.parse(line))
      .find(line => line.worker === killed && line.msg.includes('worker exited'))
    expect(said).toMatchObject({ level: 50, signal: 'SIGKILL', delay_ms: 100 })
    expect(ready()).toHaveLength(1)
  })

  it('share one metrics page, and this page keeps the counts of a worker that died or does not respond', async () => {
    await start()
    // No earlier test uses this route.
    const served = async () => {
      const page = await scrape(crew.admin)
      return page.value('http_requests_total', { route: 'stripped', method: 'GET', status: '200' })
    }
    await Promise.all(Array.from({ length: 20 }, () => get('/old/v1/races/x')))
    await eventually(served).toBe(20)
    const page = await scrape(crew.admin)
    expect(page.value('peage_change_feed_trusted')).toBe(1)
    // The crew has three processes: the primary and two workers. Each process has a pool of at most four connections.
    expect(page.value('peage_postgres_pool_max_connections')).toBe(3 * 4)
    const [killed = 0, stopped = 0] = crew.pids()
    process.kill(killed, 'SIGKILL')
    await eventually(() => crew.pids().includes(killed)).toBe(false)
    expect(await served()).toBe(20)
    await eventually(async () => (await crew.ready()).body.status).toBe('ok')
    await Promise.all(Array.from({ length: 10 }, () => get('/old/v1/races/x')))
    await eventually(served).toBe(30)
    process.kill(stopped, 'SIGSTOP')
    expect(await served()).toBe(30)
    process.kill(stopped, 'SIGCONT')
  })

  it('serve all connections, even connections that the primary had passed to a worker before this worker died', async () => {
    await start()
    const [stopped = 0] = crew.pids()
    process.kill(stopped, 'SIGSTOP')
    // The primary passes at least one of these connections to the stopped worker, which cannot serve it.
    const pending = [1, 2, 3, 4].map(() => get('/public/x'))
    await Promise.race(pending)
    process.kill(stopped, 'SIGKILL')
    expect((await Promise.all(pending)).map(({ status }) => status)).toEqual(Array(4).fill(200))
  })

  it('report the health of targets as long as at least one worker responds', async () => {
    await start()
    const [one = 0, other = 0] = crew.pids()
    const told = async () => {
      const { body } = await call(crew.admin, 'GET', '/admin/v1/routes', { token: adminToken })
      return (body.routes as { name: string; upstream: object }[]).find(({ name }) => name === 'any')
        ?.upstream
    }
    const well = { name: 'echo', healthy: true, targets: [{ url: upstream.url, healthy: true }] }
    expect(await told()).toMatchObject(well)
    process.kill(one, 'SIGSTOP')
    expect(await told()).toMatchObject(well)
    process.kill(other, 'SIGSTOP')
    expect(await told()).toEqual({ name: 'echo', healthy: false, targets: [] })
    for (const pid of [one, other]) process.kill(pid, 'SIGCONT')
    await eventually(told).toMatchObject(well)
  })

  it('continue to run after SIGHUP, because this signal only reloads the configuration', async () => {
    await start()
    for (const pid of [crew.child.pid as number, ...crew.pids()]) process.kill(pid, 'SIGHUP')
    await eventually(() => crew.lines.filter(line => line.includes('configuration reloaded')).length).toBe(1)
    expect((await bothServe('/public/x')).size).toBe(2)
    expect((await crew.ready()).body.status).toBe('ok')
  })

  it('complete requests in flight after SIGINT and exit with 0; until then, the program responds to health checks', async () => {
    await start()
    const heldBack = holdAnswers()
    const slow = Array.from({ length: 6 }, () => get('/public/slow'))
    await eventually(() => heldBack.length).toBe(6)
    const pids = crew.pids()
    // If a user presses Ctrl+C, the terminal sends SIGINT to the primary and to the workers.
    for (const pid of [crew.child.pid as number, ...pids]) process.kill(pid, 'SIGINT')
    await eventually(() => crew.lines.some(line => line.includes('"draining"'))).toBe(true)
    await eventually(() =>
      get('/public/x').then(
        () => 'served',
        error => error.code,
      ),
    ).toBe('ECONNREFUSED')
    expect((await call(crew.admin, 'GET', '/healthz')).status).toBe(200)
    for (const query of ['', '?for=public'])
      expect(await crew.ready(query)).toMatchObject({ status: 503, body: { checks: { listener: 'down' } } })
    for (const release of heldBack) release()
    const answers = await Promise.all(slow)
    expect(answers.map(({ text }) => text)).toEqual(Array(6).fill('late but whole'))
    expect(new Set(answers.map(({ worker }) => worker)).size).toBe(2)
    expect(await crew.ended).toBe(0)
    expect(pids.filter(isAlive)).toEqual([])
  })

  it('are killed if they do not exit within the drain timeout', async () => {
    await start()
    const [stuck = 0] = crew.pids()
    process.kill(stuck, 'SIGSTOP')
    const begun = performance.now()
    crew.child.kill('SIGTERM')
    expect(await crew.ended).toBe(0)
    expect(performance.now() - begun).toBeLessThan(10_000)
    await eventually(() => isAlive(stuck)).toBe(false)
  })

  it('exit at once with code 1 on a second signal', async () => {
    await start()
    const heldBack = holdAnswers()
    const slow = get('/public/slow').catch(error => error.code)
    await eventually(() => heldBack.length).toBe(1)
    const pids = crew.pids()
    crew.child.kill('SIGTERM')
    await eventually(() => crew.lines.some(line => line.includes('"draining"'))).toBe(true)
    crew.child.kill('SIGTERM')
    expect(await crew.ended).toBe(1)
    expect(await slow).toBe('ECONNRESET')
    await eventually(() => pids.filter(isAlive)).toEqual([])
  })

  it('complete requests in flight and then exit if the primary is killed', async () => {
    await start()
    const heldBack = holdAnswers()
    const slow = Array.from({ length: 4 }, () => get('/public/slow'))
    await eventually(() => heldBack.length).toBe(4)
    const pids = crew.pids()
    crew.child.kill('SIGKILL')
    await crew.ended
    // A worker must drain before it exits. Without a drain, the workers would exit during these 300 ms, and the
    // requests would fail.
    await sleep(300)
    for (const release of heldBack) release()
    expect((await Promise.all(slow)).map(({ text }) => text)).toEqual(Array(4).fill('late but whole'))
    await eventually(() => pids.filter(isAlive)).toEqual([])
  })

  it('cannot start if the port is in use; the program exits with 1 and one error line', async () => {
    const other = createServer()
    const port = Number(new URL(await listen(other)).port)
    const folder = await mkdtemp(join(tmpdir(), 'peage-crew-'))
    const file = await writeCrewFile(folder, { stores, routes: 'routes: []', port })
    const { code, stderr } = await runProgram(['start', '-c', file], folder)
    expect([code, stderr]).toEqual([
      1,
      `error: another program already listens at 127.0.0.1:${port}. Stop it, or choose another port in server.listen of ${file}.\n`,
    ])
    other.close()
    await once(other, 'close')
    await rm(folder, { recursive: true })
  })
})
