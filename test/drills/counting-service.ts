// A service behind the gateways that counts the requests of each user.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface CountingService {
  /** The number of requests by user ID. */
  readonly seen: Map<string, number>
  readonly port: number
  close(): void
}

export async function startCountingService(): Promise<CountingService> {
  const seen = new Map<string, number>()
  const server = createServer((request, response) => {
    const user = String(request.headers['x-user-id'])
    seen.set(user, (seen.get(user) ?? 0) + 1)
    response.end('{}')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    seen,
    port: (server.address() as AddressInfo).port,
    close: () => server.close().closeAllConnections(),
  }
}
