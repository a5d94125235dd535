// The service behind: 1 KB as fast as node:http gives it; at paths that end in /echo, the fields that it received.
import { createServer } from 'node:http'

const body = Buffer.alloc(1024, 'x')

const server = createServer((request, response) => {
  if (request.url?.endsWith('/echo')) {
    response.end(JSON.stringify(request.rawHeaders))
    return
  }
  response.writeHead(200, { 'content-type': 'text/plain', 'content-length': body.length })
  response.end(body)
})
server.keepAliveTimeout = 60_000
// At all addresses: one contender's target has 32.
server.listen(0, '0.0.0.0', () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  process.stdout.write(`http://127.0.0.1:${port}\n`)
})
process.once('SIGTERM', () => process.exit())
