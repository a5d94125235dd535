// Parses a target's URL into scheme, host, port, and the name in its certificate.
import { isIP } from 'node:net'
import { isLookedUp } from '../../config/formats/addresses.ts'

export interface TargetAddress {
  /** `scheme://host:port`. */
  readonly origin: string
  /** `host:port`, as in a Host header. */
  readonly host: string
  /** The name to look up. Undefined for an IP address and for `localhost`. */
  readonly lookUpName: string | undefined
  /**
   * The name that is sent as SNI and expected in the certificate. Undefined for `http:`, and by default for an IP
   * address.
   */
  readonly serverName: string | undefined
  readonly tls: { readonly ca?: string }
}

interface TlsOptions {
  /** The PEM text in the file `tls.ca`. */
  ca: string | undefined
  /** `tls.server_name`. */
  serverName: string | undefined
}

export function targetAddress(origin: string, { ca, serverName }: TlsOptions): TargetAddress {
  const url = new URL(origin)
  const { hostname } = url
  const isLiteral = isIP(hostname.replace(/^\[|\]$/g, '')) !== 0
  // SNI can contain only names (RFC 6066 §3). An IP address is not sent, but the certificate must still contain it.
  const expectedName = serverName ?? (isLiteral ? undefined : hostname)
  return {
    origin: url.origin,
    host: url.host,
    lookUpName: isLookedUp(url.origin) ? hostname : undefined,
    serverName: url.protocol === 'https:' ? expectedName : undefined,
    tls: ca === undefined ? {} : { ca },
  }
}
