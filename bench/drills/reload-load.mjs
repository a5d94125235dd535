// Clients of every kind beside reloads: none of them may notice. What one notices is written down.
import { Agent, request } from 'node:http'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'

/** Events of a slow answer, and milliseconds between them: two seconds. */
const events = { count: 20, every: 100 }

/** @param {number} port @param {{ bearer: Record<string, string>, spent: Record<string, string> }} callers */
export function startReloadLoad(port, { bearer, spent }) {
  const seen = { requests: 0, streams: 0, messages: 0, webSockets: 0 }
  /** @type {string[]} */
  const failed = []
  /** @type {string[]} */
  const broken = []
  let isOver = false
  // A machine that holds us up for long holds the gateway up too, past its limits on how long things may take.
  const own = monitorEventLoopDelay({ resolution: 10 })
  own.enable()
  const kept = new Agent({ keepAlive: true, maxSockets: 64 })
  const loops = [
    ...repeat(4, () => get('/public/small', 200, { agent: kept })),
    ...repeat(2, () => get('/public/small', 200, {})),
    ...repeat(2, () => get('/bearer/small', 200, { agent: kept, headers: bearer })),
    ...repeat(2, () => get('/counted/small', 429, { agent: kept, headers: spent })),
    ...repeat(1, () => get('/bearer/small', 401, { agent: kept })),
    ...repeat(20, stream),
    // Some for all of the time, the others for three seconds each.
    ...repeat(10, () => talk(Number.POSITIVE_INFINITY)),
    ...repeat(10, () => talk(3_000)),
  ]

  function repeat(clients, work) {
    return Array.from({ length: clients }, async () => {
      while (!isOver) await work()
    })
  }

  async function get(path, status, { agent, headers = {} }) {
    const answer = await ask(port, path, { agent: agent ?? false, headers }).catch(error => ({
      status: error.code ?? error.message,
      text: '',
    }))
    seen.requests += 1
    const isWhole = status !== 200 || answer.text.length === 1024
    if (answer.status !== status || !isWhole)
      failed.push(`${path} ${answer.status} (${answer.code ?? 'no code'}) for ${status}`)
    await sleep(20)
  }

  async function stream() {
    const path = `/public/events?count=${events.count}&every=${events.every}`
    const answer = await ask(port, path, { agent: kept }).catch(error => ({ status: error.code, text: '' }))
    seen.streams += 1
    const heard = answer.text.split('data: ').length - 1
    if (answer.status !== 200 || heard !== events.count)
      broken.push(`stream ${answer.status} ${heard} events`)
  }

  /** Says something ten times a second, and hears it said back. */
  async function talk(time) {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/talk`, { headers: bearer })
    let heard = ''
    let end = ''
    socket.on('message', data => {
      heard = String(data)
    })
    socket.on('close', code => {
      end = `closed with ${code}`
    })
    const opened = await new Promise(resolve => {
      socket.on('open', () => resolve(true)).on('error', error => resolve(error.message))
    })
    seen.webSockets += 1
    if (opened !== true) {
      failed.push(`WebSocket: ${opened}`)
      return
    }
    const until = performance.now() + time
    for (let said = 1; !isOver && end === '' && performance.now() < until; said += 1) {
      socket.send(`message ${said}`)
      for (let waited = 0; heard !== `message ${said}` && end === '' && waited < 10_000; waited += 5)
        await sleep(5)
      if (heard !== `message ${said}`) end ||= 'silent'
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

/** @returns {Promise<{ status: number | undefined, code?: string, text: string }>} rejects where the answer does not come whole */
function ask(port, path, options) {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, ...options })
    sent.on('error', reject)
    sent.on('response', answer => {
      let text = ''
      answer.setEncoding('latin1').on('data', chunk => {
        text += chunk
      })
      answer.on('error', reject)
      answer.on('end', () =>
        answer.complete
          ? resolve({ status: answer.statusCode, code: answer.headers['x-peage-error'], text })
          : reject(new Error('cut')),
      )
    })
    sent.end()
  })
}
