// The program of the contender `node:http + dispatch`: back-pressure and nothing else.
import { createServer } from 'node:http'
import { Pool } from 'undici'

const origin = `http://127.0.0.1:${process.argv[2]}`
const pool = new Pool(origin, { connections: 128, pipelining: 1 })

const server = createServer((request, response) => {
  pool.dispatch(
    {
      origin,
      path: /** @type {string} */ (request.url),
      method: /** @type {import('undici').Dispatcher.HttpMethod} */ (request.method),
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
      // To a client that has left nothing can be written: undici would wait for it for ever.
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
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  process.stdout.write(`http://127.0.0.1:${port}\n`)
})
process.once('SIGTERM', () => process.exit())
