// Opens a connection to a checked address: to the address itself, so that no name is resolved again.
import { once } from 'node:events'
import { connect as connectTcp, isIP, isIPv6, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { isPublic } from '../address/public-address.ts'

interface ConnectOptions {
  readonly addresses: readonly string[]
  readonly port: number
  /** The host that the certificate must be for, without brackets. */
  readonly host: string
  readonly isTls: boolean
  readonly allowPrivate: boolean
  /** For all addresses together; `signal` enforces it. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** PEM; trusted instead of the system's CAs. */
  readonly ca?: string | undefined
}

/** Bounds a host with many addresses: a webhook must not make the gateway probe a hundred of them. */
const maxAddressesTried = 4

/**
 * The caller must destroy the socket.
 * @throws SendFailure `address`, `connection`, `tls`; any error once `signal` is aborted
 */
export async function connect(options: ConnectOptions): Promise<Socket> {
  const socket = await connectToOne(options)
  try {
    // Checked before anything is written: what counts is the actual peer address, not the requested one.
    const { remoteAddress } = socket
    if (remoteAddress === undefined) throw new SendFailure('connection', 'closed as soon as it was open')
    if (!options.allowPrivate && !isPublic(remoteAddress)) {
      throw new SendFailure('address', `connected to ${remoteAddress}, which is not public`)
    }
    return options.isTls ? await startTls(socket, options) : socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/** Falls through to the next address: unreachable IPv6 is common. */
async function connectToOne({ addresses, port, timeoutMs, signal }: ConnectOptions): Promise<Socket> {
  const candidates = interleaveFamilies(addresses).slice(0, maxAddressesTried)
  for (const [index, host] of candidates.entries()) {
    const socket = ignoringErrors(connectTcp({ host, port }))
    // The last one gets the remaining time.
    if (index < candidates.length - 1)
      socket.setTimeout(timeoutMs / candidates.length, () => socket.destroy(new Error('silent')))
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
      // Explicit, because NODE_TLS_REJECT_UNAUTHORIZED would otherwise decide.
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

/** An unhandled socket error, even after the delivery, would end the process. */
function ignoringErrors<S extends Socket>(socket: S): S {
  return socket.on('error', () => {})
}

/** Alternates the families (RFC 8305 §4), IPv4 first: missing IPv6 is not always reported at once. */
function interleaveFamilies(addresses: readonly string[]): string[] {
  const ipv6 = addresses.filter(isIPv6)
  const ipv4 = addresses.filter(address => !isIPv6(address))
  return Array.from({ length: Math.max(ipv6.length, ipv4.length) }, (_, index) => [ipv4[index], ipv6[index]])
    .flat()
    .filter(address => address !== undefined)
}

/**
 * Why a delivery got no response, in words for the delivery log.
 * `secret`: the stored secret cannot be unsealed · `timeout`: not finished within `webhooks.timeout` · `unresolved`:
 * no name server returned an address · `address`: the host is, or resolves to, one that CONTRACT §5 refuses ·
 * `connection`: refused, unreachable or broken off · `tls`: failed handshake, or a certificate for another host or of
 * an untrusted CA · `answer`: not HTTP, or a response head over 16 KiB · `aborted`: by the caller's signal.
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

/** One short line that fits a table and a terminal: certificates and responses put text of their own into errors. */
export function describeError(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown }
  const words = [code, message].filter(word => typeof word === 'string' && word !== '')
  return words
    .join(': ')
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
    .slice(0, 200)
    .toWellFormed()
}
