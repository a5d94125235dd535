// An upstream that answers 1 KiB, and takes every WebSocket and says nothing.
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'

const body = 'x'.repeat(1024)
const server = createServer((_, response) => response.end(body))
server.keepAliveTimeout = 600_000
server.on('upgrade', (request, socket) => {
  const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`
  const accept = createHash('sha1').update(key).digest('base64')
  socket.on('error', () => {}).on('end', () => socket.end())
  socket.resume()
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  )
})
server.listen(0, '127.0.0.1', () => {
  const address = /** @type {import('node:net').AddressInfo} */ (server.address())
  process.stdout.write(`http://127.0.0.1:${address.port}\n`)
})
process.once('SIGTERM', () => process.exit())
