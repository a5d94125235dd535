// A service that listens on the same port of several loopback addresses and records the address of each request.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface AddressService {
  readonly port: number
  /** Returns the address of each request since the last `forget`, in order. */
  arrivals(): readonly string[]
  forget(): void
  close(): void
}

/** Starts the service. Each response contains the address of its request. */
export async function listenAtAddresses(addresses: readonly string[]): Promise<AddressService> {
  let arrivals: string[] = []
  let port = 0
  const servers: Server[] = []
  for (const address of addresses) {
    const server = createServer((_, response) => {
      arrivals.push(address)
      response.end(address)
    })
    await new Promise<void>(resolve => server.listen(port, address, resolve))
    port = (server.address() as AddressInfo).port
    servers.push(server)
  }
  return {
    port,
    arrivals: () => arrivals,
    forget() {
      arrivals = []
    },
    close() {
      for (const server of servers) server.close().closeAllConnections()
    },
  }
}
