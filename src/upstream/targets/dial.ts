// Connects to an address of a target, unless the address is forbidden. TLS uses the target's name.
import { type LookupOptions, lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { buildConnector } from 'undici'
import { mayBeDialled } from './dialled-addresses.ts'

/** The address to connect to, and the certificate to expect. */
export interface Dial {
  /** `scheme://host:port`. */
  readonly origin: string
  /**
   * The IP address of the name in `origin`. Undefined if `origin` contains an IP address, or if each connection looks
   * the name up.
   */
  readonly address: string | undefined
  readonly tls: { readonly ca?: string }
  readonly serverName: string | undefined
}

/** @param timeoutMs the time limit until the connection is open, including the TLS handshake */
export function createConnector({ address, tls }: Dial, timeoutMs: number): buildConnector.connector {
  const connect = buildConnector({ timeout: timeoutMs, lookup: lookUpDiallable, ...tls })
  // SNI and the certificate check still use the name, because they use `servername`.
  if (address === undefined) return connect
  return (options, callback) => connect({ ...options, hostname: address }, callback)
}

/**
 * Works like the system's lookup, but omits link-local, unspecified and cloud metadata addresses. Node does not call
 * this function if the URL contains an IP address.
 */
const lookUpDiallable: LookupFunction = (name, options: LookupOptions, callback) => {
  lookup(name, { ...options, all: true }, (error, found) => {
    const addresses = error === null ? found.filter(({ address }) => mayBeDialled(address)) : []
    const [first] = addresses
    if (error !== null || first === undefined) callback(error ?? new NotDiallableError(name), '', 0)
    else if (options.all) callback(null, addresses)
    else callback(null, first.address, first.family)
  })
}

/** The error for a name that has only forbidden addresses (see `mayBeDialled`). */
class NotDiallableError extends Error {
  override readonly name = 'NotDiallableError'

  constructor(host: string) {
    super(`${host} has no allowed address`)
  }
}
