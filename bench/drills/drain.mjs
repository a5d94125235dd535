// SIGTERM with uploads, slow answers and WebSockets in flight, behind a balancer that reacts late.
import { request } from 'node:http'
import { connect, createServer } from 'node:net'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { openStage } from './replicas.mjs'
import { setting } from './settings.mjs'
import { startUpstream } from './stage.mjs'

const rounds = setting('DRAIN_ROUNDS', 10, 2)
const drainSeconds = 10
/** How long the balancer goes on sending new connections to a replica that has been told to end. */
const lateMs = 2_000
const uploadBytes = 1 << 20

/** @type {import('./main.mjs').Drill} */
export async function drain({ say, expect }) {
  const upstream = await startUpstream()
  const stage = await openStage()
  const settings = {
    server: `, drain_timeout: ${drainSeconds}s`,
    routing: `upstreams: { service: { targets: ['http://127.0.0.1:${upstream.port}'], connections_per_client: 128 } }
routes:
  - { path: /public/socket, upstream: service, auth: none, websocket: true }
  - { path: /public/*, upstream: service, auth: none }`,
  }
  let replicas = [await stage.start(settings), await stage.start(settings)]
  const balancer = await startBalancer(() => replicas.map(({ port }) => port))
  const seen = { outcomes: new Map(), codes: new Map() }
  const exits = []
  let slowestMs = 0
  const load = startMixedLoad(balancer.port, seen)
  try {
    for (let round = 0; round < rounds; round += 1) {
      await sleep(2_000)
      const [first, second] = replicas
      const begun = performance.now()
      process.kill(first.pids[0], 'SIGTERM')
      const late = sleep(lateMs)
      exits.push(await first.ended)
      slowestMs = Math.max(slowestMs, performance.now() - begun)
      await late
      replicas = [second]
      await first.stop()
      replicas = [second, await stage.start(settings)]
    }
    await load.stop()
    const { answered, WebSocket: talks, truncated = 0, ...others } = Object.fromEntries(seen.outcomes)
    expect('no answer is truncated', truncated === 0, `${truncated} of ${answered}`)
    expect(
      `a replica ends within the drain time, with exit status 0`,
      slowestMs < drainSeconds * 1_000 && exits.every(code => code === 0),
      `${(slowestMs / 1_000).toFixed(1)} s at most, exit ${[...new Set(exits)]}, ${rounds} times`,
    )
    const codes = JSON.stringify(Object.fromEntries(seen.codes))
    expect('WebSockets are closed with 1001', [...seen.codes.keys()].join() === '1001', codes)
    expect('no request fails', Object.keys(others).length === 0, JSON.stringify(others))
    say(`${talks} WebSockets`)
  } finally {
    await load.stop()
    balancer.close()
    await stage.stop()
    await upstream.stop()
  }
}

/** Uploads, slow answers and WebSockets, each on a connection of its own, over and over. */
function startMixedLoad(port, seen) {
  let isStopping = false
  const running = [
    ...Array.from({ length: 4 }, () => again(() => upload(port))),
    ...Array.from({ length: 4 }, () => again(() => get(port, '/public/noise?bytes=4000000'))),
    ...Array.from({ length: 4 }, () => again(() => get(port, '/public/events?count=6&every=150'))),
    ...Array.from({ length: 8 }, () => again(() => get(port, '/public/small'))),
    ...Array.from({ length: 4 }, () => again(() => talk(port, seen, () => isStopping))),
  ]

  async function again(work) {
    while (!isStopping) {
      const outcome = await work()
      seen.outcomes.set(outcome, (seen.outcomes.get(outcome) ?? 0) + 1)
      await sleep(20)
    }
  }

  return {
    async stop() {
      isStopping = true
      await Promise.all(running)
    },
  }
}

const get = (port, path) => send(port, { path })

function upload(port) {
  const pieces = 16
  const body = Readable.from(
    (async function* () {
      for (let piece = 0; piece < pieces; piece += 1) {
        yield Buffer.alloc(uploadBytes / pieces, 'x')
        await sleep(50)
      }
    })(),
  )
  return send(
    port,
    { method: 'POST', path: '/public/digest', headers: { 'content-length': uploadBytes } },
    body,
  )
}

/** @returns {Promise<string>} `answered`, `truncated`, or how it failed before an answer */
function send(port, options, body = Readable.from([])) {
  return new Promise(resolve => {
    const sent = request({ host: '127.0.0.1', port, agent: false, ...options })
    sent.on('error', error =>
      resolve(`before an answer: ${/** @type {NodeJS.ErrnoException} */ (error).code}`),
    )
    sent.on('response', answer => {
      const isWhole = () => answer.complete && answer.statusCode === 200
      answer.on('error', () => resolve('truncated'))
      answer.on('end', () => resolve(isWhole() ? 'answered' : `status ${answer.statusCode}`))
      answer.resume()
    })
    body.pipe(sent)
  })
}

/** Says something ten times a second until it is closed. */
async function talk(port, seen, isStopping) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/public/socket`)
  let isRefused = false
  socket.once('error', () => {
    isRefused = true
  })
  const timer = setInterval(() => {
    if (isStopping()) socket.close(4000)
    else if (socket.readyState === WebSocket.OPEN) socket.send('still here')
  }, 100)
  const code = await new Promise(resolve => socket.once('close', resolve))
  clearInterval(timer)
  if (code !== 4000 && !isRefused) seen.codes.set(code, (seen.codes.get(code) ?? 0) + 1)
  return isRefused ? 'WebSocket refused' : 'WebSocket'
}

/** Hands each connection to the replicas in turn, and to the next where one refuses it. */
async function startBalancer(portsOf) {
  let turn = 0
  const server = createServer({ allowHalfOpen: true }, client => {
    client.on('error', () => {})
    const ports = portsOf()
    turn += 1
    const first = turn
    const tryNext = tries => {
      if (tries === ports.length) return client.destroy()
      const replica = connect({
        port: ports[(first + tries) % ports.length],
        host: '127.0.0.1',
        allowHalfOpen: true,
      })
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
  await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  return { port: server.address().port, close: () => server.close() }
}
