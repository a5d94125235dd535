// Takes a connection for a request. This happens when the request is sent, or earlier, before the use of the request is
// counted.
import type { ClientKey } from '../identity/client-key.ts'
import { tooManyConnections } from '../refusals/limits.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { Connection } from './targets/connection.ts'
import { EndpointRetired, type Wait, type WaitingClient } from './targets/connection-pool.ts'
import type { Endpoint } from './targets/endpoint.ts'
import { hashText } from './targets/rendezvous.ts'
import type { Upstream } from './targets/upstreams.ts'

/** A connection that belongs to one request, and its endpoint. */
export interface TakenConnection {
  readonly endpoint: Endpoint
  readonly connection: Connection
}

/**
 * The reservation of a connection. A request holds a reservation while its use is counted. Otherwise, the use would be
 * wasted if no connection were free afterwards.
 */
export interface Reservation {
  readonly endpoint: Endpoint
  readonly client: ClientKey
  /** Undefined if the reservation holds no connection and only adds one to the client's count of connections. */
  readonly connection: Connection | undefined
}

interface Seeker {
  readonly upstream: Upstream
  /** Identifies the client for the limit `connections_per_client`. */
  readonly client: ClientKey
  readonly waiting: WaitingClient
}

interface TakeOptions {
  /** The endpoints on which this request has failed. They are avoided. */
  readonly tried?: readonly Endpoint[]
  /**
   * Whether the request may exceed the client's share of the connections. This is true if the use is counted, or if the
   * request was already sent.
   */
  readonly isAdmitted?: boolean
  /** The wait for a free connection, if it differs from the default wait. */
  readonly wait?: Wait | undefined
}

/**
 * Reserves a connection for a request whose use is counted next. A free connection is only added to the client's count,
 * but not taken. So if the store is slow, other requests can use the connection.
 * @returns a promise if no connection is free
 * @throws the errors of `takeConnection`
 */
export function reserveConnection(seeker: Seeker): Reservation | Promise<Reservation> {
  const { upstream, client } = seeker
  if (!upstream.hasFreeConnection()) return awaitReservation(seeker)
  const endpoint = upstream.endpointFor(client)
  if (endpoint === undefined) throw tooManyConnections(upstream.connectionLimit)
  endpoint.pool.reserve(client)
  return { endpoint, client, connection: undefined }
}

async function awaitReservation(seeker: Seeker): Promise<Reservation> {
  const { endpoint, connection } = await takeConnection(seeker)
  return { endpoint, client: seeker.client, connection }
}

export function cancelReservation(reservation: Reservation | undefined): void {
  if (reservation?.connection !== undefined) reservation.connection.release()
  else reservation?.endpoint.pool.cancel(reservation.client)
}

/** Releases the reserved connection, but still counts one connection for the client. */
export function keepCounted({ endpoint, client, connection }: Reservation): Reservation {
  connection?.release()
  if (connection !== undefined) endpoint.pool.reserve(client)
  return { endpoint, client, connection: undefined }
}

/**
 * Takes the reserved connection.
 * @returns undefined if the reservation holds no connection; the reservation is then cancelled
 */
export function takeReserved(reservation: Reservation | undefined): TakenConnection | undefined {
  if (reservation?.connection !== undefined)
    return { endpoint: reservation.endpoint, connection: reservation.connection }
  cancelReservation(reservation)
  return undefined
}

/**
 * Picks an endpoint and takes a connection to it. The caller must send a request on the connection or release it.
 * @returns a promise if no connection is free
 * @throws Refusal 503 `upstream_unavailable` if no endpoint is available
 * @throws Refusal, as given in `wait`, if no connection becomes free in time
 * @throws Refusal 429 `rate_limited` if the client has used up its share, unless `isAdmitted`
 * @throws ClientDisconnected if the client leaves during the wait
 */
export function takeConnection(
  seeker: Seeker,
  options: TakeOptions = {},
): TakenConnection | Promise<TakenConnection> {
  const { upstream, client, waiting } = seeker
  const { tried = noneTried, isAdmitted, wait } = options
  const splitKey = upstream.splitsByUser ? hashText(String(client)) : undefined
  const endpoint = upstream.pickEndpoint(splitKey, tried, client)
  if (endpoint === undefined) throw new Refusal('upstream_unavailable')
  if (!isAdmitted && !endpoint.pool.admits(client)) throw tooManyConnections(upstream.connectionLimit)
  const connection = endpoint.pool.tryAcquire(client)
  if (connection !== undefined) return { endpoint, connection }
  return endpoint.pool.acquire(client, waiting, wait).then(
    freed => ({ endpoint, connection: freed }),
    thrown => {
      if (thrown instanceof EndpointRetired) return takeConnection(seeker, options)
      throw thrown
    },
  )
}

const noneTried: readonly Endpoint[] = []
