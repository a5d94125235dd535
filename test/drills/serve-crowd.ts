// The clients of the drill `crowd` in a separate process. Some clients keep idle connections. The other clients send
// slow heads, and reconnect when their connection is closed.
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const [port = 0, idle = 0, dribblers = 0] = process.argv.slice(2).map(Number)

/**
 * `cut` is the number of connections with slow heads that were closed. `longest` is the maximum time in milliseconds
 * that one of these connections was open.
 */
export interface CrowdState {
  open: number
  closed: number
  cut: number
  longest: number
}

const state: CrowdState = { open: 0, closed: 0, cut: 0, longest: 0 }

/** Sends one request, reads the response, and then stays idle. */
function beIdle(): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => socket.write('GET /public/small HTTP/1.1\r\nHost: crowd\r\n\r\n'))
    socket.once('data', () => {
      state.open += 1
      socket.once('close', () => {
        state.open -= 1
        state.closed += 1
      })
      resolve()
    })
    socket.on('data', () => {}).on('error', reject)
  })
}

/** Sends one byte of a head per second. When the connection is closed, starts again with a new connection. */
function dribble(): void {
  const socket = connect(port, '127.0.0.1')
  let begun = 0
  let drip: NodeJS.Timeout | undefined
  socket.once('connect', () => {
    begun = performance.now()
    socket.write('GET /public/small HTTP/1.1\r\nHost: crowd\r\nX-Slow: ')
    drip = setInterval(() => socket.write('x'), 1_000)
  })
  socket.on('error', () => {}).resume()
  socket.once('close', () => {
    clearInterval(drip)
    if (begun > 0) {
      state.cut += 1
      state.longest = Math.max(state.longest, performance.now() - begun)
    }
    setTimeout(dribble, 50)
  })
}

for (let i = 0; i < idle; i += 100) {
  await Promise.all(Array.from({ length: Math.min(100, idle - i) }, beIdle))
}
for (let i = 0; i < dribblers; i += 1) {
  dribble()
  if (i % 50 === 0) await sleep(10)
}
process.on('message', () => process.send?.(state))
process.send?.('ready')
