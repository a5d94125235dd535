// The crowd's end of the connections, in a process of its own: idle ones that stay, and dribblers that come again.
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const [port = 0, idle = 0, dribblers = 0] = process.argv.slice(2).map(Number)

const state = { open: 0, closed: 0, cut: 0, longest: 0 }

/** Asks once, reads the answer, and then is silent for as long as it may. */
function beIdle() {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => socket.write('GET /public/small HTTP/1.1\r\nHost: crowd\r\n\r\n'))
    socket.once('data', () => {
      state.open += 1
      socket.once('close', () => {
        state.open -= 1
        state.closed += 1
      })
      resolve(undefined)
    })
    socket.on('data', () => {}).on('error', reject)
  })
}

/** A byte of a head each second; when it is cut, it comes again. */
function dribble() {
  const socket = connect(port, '127.0.0.1')
  let begun = 0
  let drip
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
