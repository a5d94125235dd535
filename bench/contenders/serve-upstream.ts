// The upstream responds with 1 KiB as fast as node:http can. Paths that end in /echo return the received headers.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { bodyLength } from '../contender.ts'

const body = Buffer.alloc(bodyLength, 'x')

const server = createServer((request, response) => {
  if (request.url?.endsWith('/echo')) {
    response.end(JSON.stringify(request.rawHeaders))
    return
  }
  response.writeHead(200, { 'content-type': 'text/plain', 'content-length': body.length })
  response.end(body)
})
server.keepAliveTimeout = 60_000
// The upstream listens at all addresses, because the contender `manyAddresses` connects to 32 loopback addresses.
server.listen(0, '0.0.0.0', () => {
  const { port } = server.address() as AddressInfo
  process.stdout.write(`http://127.0.0.1:${port}\n`)
})
process.once('SIGTERM', () => process.exit())
