// Connections and WebSockets that were used once and are idle.
import { connect } from 'node:net'

/** How many are opened at a time. */
const atOnce = 100

/**
 * @param {number} port
 * @param {string} path
 * @param {'connection' | 'WebSocket'} kind
 * @param {number} count
 */
export async function openIdle(port, path, kind, count) {
  const upgrade =
    'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
  const bytes = `GET ${path} HTTP/1.1\r\nHost: service.example\r\n${kind === 'WebSocket' ? upgrade : ''}\r\n`
  const expected = kind === 'WebSocket' ? 'HTTP/1.1 101' : 'HTTP/1.1 200'
  const sockets = []
  while (sockets.length < count) {
    const some = Array.from({ length: Math.min(atOnce, count - sockets.length) }, () =>
      openOne(port, bytes, expected),
    )
    sockets.push(...(await Promise.all(some)))
  }
  return {
    close() {
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** @returns {Promise<import('node:net').Socket>} answered */
function openOne(port, bytes, expected) {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    socket.write(bytes)
    socket.once('data', chunk => {
      if (chunk.toString('latin1').startsWith(expected)) resolve(socket)
      else reject(new Error(`${expected} was expected: ${chunk.toString('latin1').slice(0, 60)}`))
    })
    socket.on('error', reject)
  })
}
