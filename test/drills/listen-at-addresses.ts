// A service that listens at several loopback addresses with the same port. It records at which address each request
// arrives.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface AddressService {
  readonly port: number
  /** Returns the addresses at which requests arrived since the last call of `forget`, in the order of arrival. */
  arrivals(): readonly string[]
  forget(): void
  close(): void
}

/** Starts the service. Each response contains the address at which the request arrived. */
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
