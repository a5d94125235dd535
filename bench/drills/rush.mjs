// Everybody comes at once, and each asks several times at the same moment.
import { connect } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'

/** Parties at a time: as many users are asked for at any moment. */
const parties = 32

/**
 * @param {number} port
 * @param {readonly string[]} tokens of one user each
 * @param {number} together requests of one user at the same moment
 * @returns {Promise<{ answered: number, failures: string[], seconds: number, ownStall: number }>} milliseconds for which
 *   this process stood still, at most
 */
export async function rush(port, tokens, together) {
  const rush = { answered: 0, failures: [] }
  const begun = performance.now()
  const own = monitorEventLoopDelay({ resolution: 5 })
  own.enable()
  let next = 0
  const ask = async () => {
    const sockets = await Promise.all(Array.from({ length: together }, () => open(port)))
    while (next < tokens.length) {
      const token = tokens[next]
      next += 1
      const bytes = Buffer.from(
        `GET /public/small HTTP/1.1\r\nHost: drill\r\nAuthorization: Bearer ${token}\r\n\r\n`,
      )
      for (const status of await Promise.all(sockets.map(socket => socket.ask(bytes)))) {
        if (status === '200') rush.answered += 1
        else rush.failures.push(`${status} after ${((performance.now() - begun) / 1000).toFixed(1)} s`)
      }
    }
    for (const socket of sockets) socket.close()
  }
  await Promise.all(Array.from({ length: parties }, ask))
  own.disable()
  return { ...rush, seconds: (performance.now() - begun) / 1000, ownStall: own.max / 1e6 }
}

function open(port) {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1').setNoDelay(true)
    let received = ''
    let answer = status => reject(new Error(status))
    let ended = ''
    const end = why => {
      ended ||= why
      answer(ended)
    }
    socket.on('data', chunk => {
      received += chunk.toString('latin1')
      const head = received.indexOf('\r\n\r\n')
      if (head === -1) return
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(received)?.[1])
      if (received.length < head + 4 + length) return
      const status = received.slice(9, 12)
      received = ''
      answer(status)
    })
    socket.on('error', error => end(error.code ?? error.message)).on('close', () => end('closed'))
    socket.once('connect', () =>
      resolve({
        ask: bytes =>
          new Promise(done => {
            answer = done
            if (ended === '') socket.write(bytes)
            else done(ended)
          }),
        close: () => socket.destroy(),
      }),
    )
  })
}
