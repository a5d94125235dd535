// A service behind the gateways that counts the requests of each user.
import { createServer } from 'node:http'

export async function startCountingService() {
  /** By the user's id. @type {Map<string, number>} */
  const seen = new Map()
  const server = createServer((request, response) => {
    const user = String(request.headers['x-user-id'])
    seen.set(user, (seen.get(user) ?? 0) + 1)
    response.end('{}')
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  const address = /** @type {import('node:net').AddressInfo} */ (server.address())
  return { seen, port: address.port, close: () => server.close().closeAllConnections() }
}
