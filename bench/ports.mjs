// Ports of 127.0.0.1: a free one for a server that cannot choose, and whether one is open.
import { once } from 'node:events'
import { connect, createServer } from 'node:net'

/** @returns {Promise<number>} */
export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  server.close()
  await once(server, 'close')
  return port
}

/**
 * @param {number} port
 * @returns {Promise<boolean>}
 */
export function isListening(port) {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1')
    const answer = (/** @type {boolean} */ is) => {
      socket.destroy()
      resolve(is)
    }
    socket.once('connect', () => answer(true)).once('error', () => answer(false))
  })
}
