// The program of the contender `node:http + dispatch`. It only forwards requests and responses, with back-pressure.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Dispatcher, Pool } from 'undici'

const origin = `http://127.0.0.1:${process.argv[2]}`
const pool = new Pool(origin, { connections: 128, pipelining: 1 })

const server = createServer((request, response) => {
  pool.dispatch(
    {
      origin,
      path: request.url as string,
      method: request.method as Dispatcher.HttpMethod,
      headers: request.rawHeaders.filter((_, at, all) => all[at - (at % 2)]?.toLowerCase() !== 'connection'),
    },
    {
      onConnect() {},
      onHeaders(status, raw, resume) {
        const fields = raw.map(String)
        const kept = fields.filter((_, at) => !hopByHop.has(fields[at - (at % 2)]?.toLowerCase() ?? ''))
        response.writeHead(status, kept)
        response.on('drain', resume)
        return true
      },
      // If the client has disconnected, `onData` must return true. Otherwise undici would wait forever for `drain`.
      onData: chunk => response.destroyed || response.write(chunk),
      onComplete: () => {
        response.end()
      },
      onError: () => {
        response.destroy()
      },
    },
  )
})
const hopByHop = new Set(['connection', 'keep-alive', 'transfer-encoding'])

server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  process.stdout.write(`http://127.0.0.1:${port}\n`)
})
process.once('SIGTERM', () => process.exit())
