// A TLS connection to one of the addresses that were checked: to the address itself, so that no name is asked again.
import { once } from 'node:events'
import { connect as connectTcp, isIP, isIPv6, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { describeError, SendFailure } from './failure.ts'
import { isPublic } from './public-address.ts'

export interface ConnectOptions {
  readonly addresses: readonly string[]
  readonly port: number
  /** What the certificate must be for, without brackets. */
  readonly host: string
  readonly allowPrivate: boolean
  /** Milliseconds for all addresses; `signal` holds it. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** Trusted instead of the system's authorities, PEM. */
  readonly ca?: string | undefined
}

/** Of a host with many addresses; nobody may have us knock at a hundred doors. */
const maxAddressesTried = 4

/**
 * The caller destroys it.
 * @throws SendFailure `address`, `connection`, `tls`; anything once `signal` is aborted
 */
export async function connect(options: ConnectOptions): Promise<TLSSocket> {
  const socket = await connectToOne(options)
  try {
    // Before anything is written: where it ended up decides, whatever was asked for.
    const { remoteAddress } = socket
    if (remoteAddress === undefined) throw new SendFailure('connection', 'closed as soon as it was open')
    if (!options.allowPrivate && !isPublic(remoteAddress)) {
      throw new SendFailure('address', `connected to ${remoteAddress}, which is not public`)
    }
    return await startTls(socket, options)
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/** The next where one cannot be connected to: IPv6 that leads nowhere is common. */
async function connectToOne({ addresses, port, timeoutMs, signal }: ConnectOptions): Promise<Socket> {
  const candidates = interleaveFamilies(addresses).slice(0, maxAddressesTried)
  for (const [index, host] of candidates.entries()) {
    const socket = ignoringErrors(connectTcp({ host, port }))
    // The last one has what is left.
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
      // An address is looked for in the certificate, and never sent as a server name (RFC 6066 §3).
      ...(isIP(host) === 0 ? { servername: host } : { host }),
      ALPNProtocols: ['http/1.1'],
      // Said aloud: NODE_TLS_REJECT_UNAUTHORIZED would decide otherwise.
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

/** What a socket says after we are done with it interests nobody, and must not end the process. */
function ignoringErrors<S extends Socket>(socket: S): S {
  return socket.on('error', () => {})
}

/** The families in turn (RFC 8305 §4), IPv4 first: where there is no IPv6, its absence is not always said at once. */
function interleaveFamilies(addresses: readonly string[]): string[] {
  const ipv6 = addresses.filter(isIPv6)
  const ipv4 = addresses.filter(address => !isIPv6(address))
  return Array.from({ length: Math.max(ipv6.length, ipv4.length) }, (_, index) => [ipv4[index], ipv6[index]])
    .flat()
    .filter(address => address !== undefined)
}
