// The upstream of the drills. With `--port`, a restarted upstream gets its previous port.
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseArgs } from 'node:util'
import { WebSocketServer } from 'ws'
import { digest, noise } from './noise.ts'

const { values } = parseArgs({ options: { port: { type: 'string', default: '0' } } })

/** The number of bytes that the last response of `/public/noise` has sent so far. */
let written = 0
/** The number of small responses since the start. */
let served = 0

const server = createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://upstream')
  const number = (name: string) => Number(searchParams.get(name))
  switch (pathname) {
    case '/public/noise':
      written = 0
      response.writeHead(200, { 'content-length': number('bytes') })
      noise(number('bytes'), bytes => {
        written = bytes
      }).pipe(response)
      break
    case '/public/digest':
      answer(response, await digest(request).catch(() => ({})))
      break
    case '/public/events':
      await sendEvents(response, number('count'), number('every'))
      break
    case '/public/small':
    case '/guarded/small':
      served += 1
      response.end(Buffer.alloc(1024, 'x'))
      break
    case '/state':
      answer(response, { written, served })
      break
    default:
      response.writeHead(number('status') || 404).end()
  }
})

function answer(response: ServerResponse, value: object): void {
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify(value))
}

/** Sends events. Each event contains the time when it was sent, in nanoseconds of the system's monotonic clock. */
async function sendEvents(response: ServerResponse, count: number, every: number): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (let i = 0; i < count; i += 1) {
    if (i > 0) await new Promise(resolve => setTimeout(resolve, every))
    response.write(`data: ${process.hrtime.bigint()}\n\n`)
  }
  response.end()
}

const talking = new WebSocketServer({ noServer: true })
server.on('upgrade', (request, socket, head) => {
  talking.handleUpgrade(request, socket, head, webSocket => {
    webSocket.on('error', () => {}).on('message', data => webSocket.send(String(data)))
  })
})

server.keepAliveTimeout = 60_000
server.listen(Number(values.port), '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`)
})
process.once('SIGTERM', () => process.exit())
