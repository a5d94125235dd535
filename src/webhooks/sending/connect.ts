// Connects to a checked address, without resolving the name again.
import { once } from 'node:events'
import { connect as connectTcp, isIP, isIPv6, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { isPublic } from '../address/public-address.ts'

interface ConnectOptions {
  readonly addresses: readonly string[]
  readonly port: number
  /** The host name or IP address that the certificate must contain. An IPv6 address has no brackets here. */
  readonly host: string
  readonly isTls: boolean
  readonly allowPrivate: boolean
  /** The total time limit for all addresses. The caller aborts `signal` when this time has passed. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** The CA in PEM format, which replaces the system's CAs. */
  readonly ca?: string | undefined
}

/**
 * The maximum number of addresses that are tried for a host. A webhook must not make the gateway connect to a hundred
 * addresses.
 */
const maxAddressesTried = 4

/**
 * Connects to one of the addresses. The caller must destroy the socket.
 * @throws SendFailure with the reason `address`, `connection` or `tls`; after `signal` was aborted, any error
 */
export async function connect(options: ConnectOptions): Promise<Socket> {
  const socket = await connectToOne(options)
  try {
    // Checks the actual peer address before anything is written, because it may differ from the requested address.
    const { remoteAddress } = socket
    if (remoteAddress === undefined)
      throw new SendFailure('connection', 'the connection was closed immediately after it was opened')
    if (!options.allowPrivate && !isPublic(remoteAddress)) {
      throw new SendFailure('address', `connected to ${remoteAddress}, which is not public`)
    }
    return options.isTls ? await startTls(socket, options) : socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/** Connects to the first address that works. Several addresses are tried, because IPv6 is often unreachable. */
async function connectToOne({ addresses, port, timeoutMs, signal }: ConnectOptions): Promise<Socket> {
  const candidates = interleaveFamilies(addresses).slice(0, maxAddressesTried)
  for (const [index, host] of candidates.entries()) {
    const socket = ignoringErrors(connectTcp({ host, port }))
    // The last address has no limit of its own, so it gets the remaining time.
    if (index < candidates.length - 1)
      socket.setTimeout(timeoutMs / candidates.length, () => socket.destroy(new Error('no response')))
    try {
      await once(socket, 'connect', { signal })
      socket.setTimeout(0)
      return socket
    } catch (error) {
      socket.destroy()
      if (signal.aborted || index === candidates.length - 1) {
        throw new SendFailure('connection', describeError(error))
      }
    }
  }
  throw new SendFailure('connection', 'no address to connect to')
}

async function startTls(socket: Socket, { host, ca, signal }: ConnectOptions): Promise<TLSSocket> {
  const tlsSocket = ignoringErrors(
    connectTls({
      socket,
      // An IP address is matched against the certificate, and must not be sent as SNI (RFC 6066 §3).
      ...(isIP(host) === 0 ? { servername: host } : { host }),
      ALPNProtocols: ['http/1.1'],
      // Without this option, the variable NODE_TLS_REJECT_UNAUTHORIZED would decide whether certificates are checked.
      rejectUnauthorized: true,
      ...(ca !== undefined && { ca }),
    }),
  )
  try {
    await once(tlsSocket, 'secureConnect', { signal })
    return tlsSocket
  } catch (error) {
    tlsSocket.destroy()
    throw new SendFailure('tls', describeError(error))
  }
}

/** Ignores errors of the socket, because an unhandled error would end the process, even after the delivery. */
function ignoringErrors<S extends Socket>(socket: S): S {
  return socket.on('error', () => {})
}

/**
 * Alternates IPv4 and IPv6 (RFC 8305 §4), with IPv4 first. Without IPv6, a connection to an IPv6 address does not
 * always fail immediately.
 */
function interleaveFamilies(addresses: readonly string[]): string[] {
  const ipv6 = addresses.filter(isIPv6)
  const ipv4 = addresses.filter(address => !isIPv6(address))
  return Array.from({ length: Math.max(ipv6.length, ipv4.length) }, (_, index) => [ipv4[index], ipv6[index]])
    .flat()
    .filter(address => address !== undefined)
}

/**
 * The reason why a delivery got no response, for the delivery log.
 *
 * - `secret`: the stored secret cannot be decrypted
 * - `timeout`: not finished within `webhooks.timeout`
 * - `unresolved`: no address from any name server
 * - `address`: the host has a forbidden address
 * - `connection`: refused, unreachable or interrupted
 * - `tls`: failed handshake, or a certificate for another host or from an untrusted CA
 * - `answer`: no valid HTTP response, or a response head over 16 KiB
 * - `aborted`: aborted by the caller's signal
 */
export type FailureReason =
  | 'secret'
  | 'timeout'
  | 'unresolved'
  | 'address'
  | 'connection'
  | 'tls'
  | 'answer'
  | 'aborted'

export class SendFailure extends Error {
  readonly reason: FailureReason

  constructor(reason: FailureReason, message: string) {
    super(message)
    this.reason = reason
  }
}

/**
 * Describes an error in one short line for tables and terminals. Control characters are removed, because certificates
 * and responses can add their own text to an error.
 */
export function describeError(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown }
  const words = [code, message].filter(word => typeof word === 'string' && word !== '')
  return words
    .join(': ')
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
    .slice(0, 200)
    .toWellFormed()
}
