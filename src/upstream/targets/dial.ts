// Connects to an address of a target under the target's name, unless a name may not lead to that address.
import { type LookupOptions, lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { buildConnector } from 'undici'
import { mayBeDialled } from './dialled-addresses.ts'

/** Where to connect, and which certificate is expected there. */
export interface Dial {
  /** `scheme://host:port`. */
  readonly origin: string
  /** Undefined for a literal address, or to look the name up at each connect. */
  readonly address: string | undefined
  readonly tls: { readonly ca?: string }
  readonly serverName: string | undefined
}

/** @param timeoutMs until the connection is open, TLS included */
export function createConnector({ address, tls }: Dial, timeoutMs: number): buildConnector.connector {
  const connect = buildConnector({ timeout: timeoutMs, lookup: lookUpDiallable, ...tls })
  // The name stays in SNI and in the certificate's check, which go by `servername`.
  if (address === undefined) return connect
  return (options, callback) => connect({ ...options, hostname: address }, callback)
}

/** As the system's look-up, without addresses that a name may not lead to (CONTRACT §11). Literals are not looked up. */
const lookUpDiallable: LookupFunction = (name, options: LookupOptions, callback) => {
  lookup(name, { ...options, all: true }, (error, found) => {
    const addresses = error === null ? found.filter(({ address }) => mayBeDialled(address)) : []
    const [first] = addresses
    if (error !== null || first === undefined) callback(error ?? new NotDiallableError(name), '', 0)
    else if (options.all) callback(null, addresses)
    else callback(null, first.address, first.family)
  })
}

/** The look-up named only addresses that are link-local, unspecified or a cloud's metadata service. */
class NotDiallableError extends Error {
  override readonly name = 'NotDiallableError'

  constructor(host: string) {
    super(`${host} names no address that may be dialled`)
  }
}
