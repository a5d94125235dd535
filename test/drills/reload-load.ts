// Runs clients of every kind during reloads, and records every failure. A reload must not affect any client.
import { Agent, type RequestOptions, request } from 'node:http'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import type { Callers } from './console-load.ts'
import { codeOf } from './error-code.ts'

/** The number of events in a slow response, and the milliseconds between two events. */
const events = { count: 20, every: 100 }

export interface ReloadLoad {
  readonly seen: {
    readonly requests: number
    readonly streams: number
    readonly messages: number
    readonly webSockets: number
  }
  /** The requests with an unexpected response. */
  readonly failed: readonly string[]
  /** The streams and WebSockets that ended early. */
  readonly broken: readonly string[]
  /** @returns the longest time for which this process was blocked, in milliseconds */
  stop(): Promise<{ ownStall: number }>
}

export function startReloadLoad(port: number, { bearer, spent }: Callers): ReloadLoad {
  const seen = { requests: 0, streams: 0, messages: 0, webSockets: 0 }
  const failed: string[] = []
  const broken: string[] = []
  let isOver = false
  // A busy machine can block this process. It can also delay the gateway so long that timeouts expire. Therefore, the
  // drill reports how long this process was blocked.
  const own = monitorEventLoopDelay({ resolution: 10 })
  own.enable()
  const kept = new Agent({ keepAlive: true, maxSockets: 64 })
  const loops = [
    ...repeat(4, () => get('/public/small', 200, { agent: kept })),
    ...repeat(2, () => get('/public/small', 200, { agent: false })),
    ...repeat(2, () => get('/bearer/small', 200, { agent: kept, headers: bearer })),
    ...repeat(2, () => get('/counted/small', 429, { agent: kept, headers: spent })),
    ...repeat(1, () => get('/bearer/small', 401, { agent: kept })),
    ...repeat(20, stream),
    // Ten WebSockets stay open until the end. The other ten WebSockets stay open for three seconds, and are then
    // replaced.
    ...repeat(10, () => talk(Number.POSITIVE_INFINITY)),
    ...repeat(10, () => talk(3_000)),
  ]

  function repeat(clients: number, work: () => Promise<void>): Promise<void>[] {
    return Array.from({ length: clients }, async () => {
      while (!isOver) await work()
    })
  }

  async function get(path: string, expected: number, options: RequestOptions): Promise<void> {
    const { status, code, text } = await ask(port, path, options)
    seen.requests += 1
    const isWhole = expected !== 200 || text.length === 1024
    if (status !== expected || !isWhole)
      failed.push(`${path}: ${status} (${code ?? 'no error code'}) instead of ${expected}`)
    await sleep(20)
  }

  async function stream(): Promise<void> {
    const path = `/public/events?count=${events.count}&every=${events.every}`
    const { status, text } = await ask(port, path, { agent: kept })
    seen.streams += 1
    const received = text.split('data: ').length - 1
    if (status !== 200 || received !== events.count) broken.push(`stream: ${status} with ${received} events`)
  }

  /** Sends ten messages per second and waits for each echo. */
  async function talk(time: number): Promise<void> {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/talk`, { headers: bearer })
    let received = ''
    let end = ''
    socket.on('message', data => {
      received = String(data)
    })
    socket.on('close', code => {
      end = `closed with ${code}`
    })
    const opened = await new Promise<true | string>(resolve => {
      socket.on('open', () => resolve(true)).on('error', error => resolve(error.message))
    })
    seen.webSockets += 1
    if (opened !== true) {
      failed.push(`WebSocket: ${opened}`)
      return
    }
    const until = performance.now() + time
    for (let nth = 1; !isOver && end === '' && performance.now() < until; nth += 1) {
      const message = `message ${nth}`
      socket.send(message)
      for (let waited = 0; received !== message && end === '' && waited < 10_000; waited += 5) await sleep(5)
      if (received !== message) end ||= 'silent'
      seen.messages += 1
      await sleep(100)
    }
    if (end !== '') broken.push(`WebSocket ${end}`)
    socket.close()
  }

  return {
    seen,
    failed,
    broken,
    async stop() {
      isOver = true
      await Promise.all(loops)
      kept.destroy()
      return { ownStall: own.max / 1e6 }
    },
  }
}

interface Answer {
  /** The status code, or the reason why there is no complete response. */
  readonly status: number | string
  /** The error code, if the response comes from the gateway itself. */
  readonly code: string | undefined
  readonly text: string
}

function ask(port: number, path: string, options: RequestOptions): Promise<Answer> {
  return new Promise(resolve => {
    const fail = (status: string) => resolve({ status, code: undefined, text: '' })
    const sent = request({ host: '127.0.0.1', port, path, ...options })
    sent.on('error', error => fail(codeOf(error)))
    sent.on('response', answer => {
      let text = ''
      answer.setEncoding('latin1').on('data', chunk => {
        text += chunk
      })
      answer.on('error', error => fail(codeOf(error)))
      answer.on('end', () => {
        const code = answer.headers['x-peage-error']
        if (answer.complete) resolve({ status: answer.statusCode ?? 0, code: code?.toString(), text })
        else fail('cut')
      })
    })
    sent.end()
  })
}
