// Replicas get SIGTERM during uploads, slow responses and WebSockets. The load balancer in front of the replicas
// notices this late.
import { type RequestOptions, request } from 'node:http'
import { type AddressInfo, connect, createServer } from 'node:net'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { codeOf } from './error-code.ts'
import { openStage } from './replicas.ts'
import { setting } from './settings.ts'
import { serviceAt, startUpstream } from './stage.ts'
import type { Watch } from './watch.ts'

const rounds = setting('DRAIN_ROUNDS', 10, 2)
const drainSeconds = 10
/**
 * The milliseconds between SIGTERM and the reaction of the load balancer. During this time, the ending replica still
 * gets new connections.
 */
const lateMs = 2_000
const uploadBytes = 1 << 20

export async function drain({ say, expect }: Watch): Promise<void> {
  const upstream = await startUpstream()
  const stage = await openStage()
  const settings = {
    server: `, drain_timeout: ${drainSeconds}s`,
    routing: `${serviceAt(upstream.port)}
routes:
  - { path: /public/socket, upstream: service, auth: none, websocket: true }
  - { path: /public/*, upstream: service, auth: none }`,
  }
  let ending = await stage.start(settings)
  let staying = await stage.start(settings)
  let ports = [ending.port, staying.port]
  const balancer = await startBalancer(() => ports)
  const exits: (number | null)[] = []
  let slowestMs = 0
  const load = startMixedLoad(balancer.port)
  try {
    for (let round = 0; round < rounds; round += 1) {
      await sleep(2_000)
      const begun = performance.now()
      process.kill(ending.pid, 'SIGTERM')
      const late = sleep(lateMs)
      exits.push(await ending.ended)
      slowestMs = Math.max(slowestMs, performance.now() - begun)
      await late
      ports = [staying.port]
      await ending.stop()
      ending = staying
      staying = await stage.start(settings)
      ports = [ending.port, staying.port]
    }
    await load.stop()
    const outcomes = Object.fromEntries(load.outcomes)
    const { answered, WebSocket: talks, truncated = 0, ...others } = outcomes
    expect('no response is truncated', truncated === 0, `${truncated} of ${answered}`)
    expect(
      'a replica ends within the drain timeout, with exit status 0',
      slowestMs < drainSeconds * 1_000 && exits.every(code => code === 0),
      `at most ${(slowestMs / 1_000).toFixed(1)} s, exit status ${[...new Set(exits)]}, ${rounds} times`,
    )
    const codes = JSON.stringify(Object.fromEntries(load.codes))
    expect('WebSockets are closed with 1001', [...load.codes.keys()].join() === '1001', codes)
    expect('no request fails', Object.keys(others).length === 0, JSON.stringify(others))
    say(`${talks} WebSockets`)
  } finally {
    await load.stop()
    balancer.close()
    await stage.stop()
    await upstream.stop()
  }
}

interface MixedLoad {
  /** The number of requests and WebSockets by outcome. */
  readonly outcomes: ReadonlyMap<string, number>
  /** The number of WebSockets that the gateway closed, by close code. */
  readonly codes: ReadonlyMap<number, number>
  stop(): Promise<void>
}

/** Starts uploads, slow responses and WebSockets in endless loops, each on its own connection. */
function startMixedLoad(port: number): MixedLoad {
  const outcomes = new Map<string, number>()
  const codes = new Map<number, number>()
  let isStopping = false
  const running = [
    ...repeat(4, () => upload(port)),
    ...repeat(4, () => get(port, '/public/noise?bytes=4000000')),
    ...repeat(4, () => get(port, '/public/events?count=6&every=150')),
    ...repeat(8, () => get(port, '/public/small')),
    ...repeat(4, talk),
  ]

  function repeat(clients: number, work: () => Promise<string>): Promise<void>[] {
    return Array.from({ length: clients }, async () => {
      while (!isStopping) {
        const outcome = await work()
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
        await sleep(20)
      }
    })
  }

  /** Sends a message ten times a second until the WebSocket is closed. */
  async function talk(): Promise<string> {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/public/socket`)
    let isRefused = false
    socket.once('error', () => {
      isRefused = true
    })
    const timer = setInterval(() => {
      if (isStopping) socket.close(4000)
      else if (socket.readyState === WebSocket.OPEN) socket.send('still here')
    }, 100)
    const code = await new Promise<number>(resolve => socket.once('close', resolve))
    clearInterval(timer)
    if (isRefused) return 'WebSocket refused'
    if (code !== 4000) codes.set(code, (codes.get(code) ?? 0) + 1)
    return 'WebSocket'
  }

  return {
    outcomes,
    codes,
    async stop() {
      isStopping = true
      await Promise.all(running)
    },
  }
}

function get(port: number, path: string): Promise<string> {
  return send(port, { path })
}

function upload(port: number): Promise<string> {
  const pieces = 16
  async function* body() {
    for (let piece = 0; piece < pieces; piece += 1) {
      yield Buffer.alloc(uploadBytes / pieces, 'x')
      await sleep(50)
    }
  }
  const headers = { 'content-length': uploadBytes }
  return send(port, { method: 'POST', path: '/public/digest', headers }, Readable.from(body()))
}

/** @returns `answered` for a complete response with a 200; otherwise, a text that describes the failure */
function send(port: number, options: RequestOptions, body = Readable.from([])): Promise<string> {
  return new Promise(resolve => {
    const sent = request({ host: '127.0.0.1', port, agent: false, ...options })
    sent.on('error', error => resolve(`no response: ${codeOf(error)}`))
    sent.on('response', answer => {
      const isWhole = () => answer.complete && answer.statusCode === 200
      answer.on('error', () => resolve('truncated'))
      answer.on('end', () => resolve(isWhole() ? 'answered' : `status ${answer.statusCode}`))
      answer.resume()
    })
    body.pipe(sent)
  })
}

/**
 * Starts a load balancer that passes connections to the replicas in turn. If a replica refuses a connection, the load
 * balancer passes it to the next replica.
 */
async function startBalancer(portsOf: () => readonly number[]): Promise<{ port: number; close(): void }> {
  let turn = 0
  const server = createServer({ allowHalfOpen: true }, client => {
    client.on('error', () => {})
    const ports = portsOf()
    turn += 1
    const first = turn
    const tryNext = (tries: number) => {
      const port = ports[(first + tries) % ports.length]
      if (tries === ports.length || port === undefined) {
        client.destroy()
        return
      }
      const replica = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
      const onRefused = () => tryNext(tries + 1)
      replica.once('error', onRefused)
      replica.once('connect', () => {
        replica.off('error', onRefused)
        replica.on('error', () => client.resetAndDestroy())
        client.on('close', () => replica.destroy())
        replica.on('close', hadError => (hadError ? client.resetAndDestroy() : client.end()))
        client.pipe(replica).pipe(client)
      })
    }
    tryNext(0)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return { port: (server.address() as AddressInfo).port, close: () => server.close() }
}
