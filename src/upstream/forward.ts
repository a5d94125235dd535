// Forwards one request and streams its response back, with back-pressure both ways and no body buffered whole.
import type { ServerResponse } from 'node:http'
import { ClientDisconnected } from '../refusals/refusal.ts'
import { dispatch } from './dispatch.ts'
import type { ForwardOptions } from './forward-options.ts'
import type { Connection } from './targets/connection.ts'
import type { ConnectionPool } from './targets/connection-pool.ts'
import type { Target } from './targets/target.ts'

/** Once a response has begun, a failure breaks the client's connection: half a response never looks complete. */
export function forward(options: ForwardOptions): void {
  attempt(options, options.upstream.pickTarget(), options.upstream.retries)
}

/** @param retriesLeft how often the request may still be sent again, while no byte of a response has come */
function attempt(options: ForwardOptions, target: Target, retriesLeft: number): void {
  const connection = target.pool.tryAcquire()
  if (connection !== undefined) send(options, target, connection, retriesLeft)
  else {
    waitForConnection(target.pool, options.response).then(
      freed => send(options, target, freed, retriesLeft),
      thrown => options.observer.onRefused(thrown),
    )
  }
}

function send(options: ForwardOptions, target: Target, connection: Connection, retriesLeft: number): void {
  // A response emits `close` only once, and this one has: a request dispatched now would never be aborted.
  if (options.response.destroyed) {
    connection.release()
    options.observer.onRefused(new ClientDisconnected())
  } else dispatch(options, target, connection, retriesLeft, retry)
}

function retry(options: ForwardOptions, failed: Target, retriesLeft: number): void {
  attempt(options, options.upstream.pickTarget(failed), retriesLeft - 1)
}

async function waitForConnection(pool: ConnectionPool, response: ServerResponse): Promise<Connection> {
  let onClose = () => {}
  try {
    return await pool.acquire(cancel => {
      onClose = cancel
      response.on('close', cancel)
    })
  } finally {
    response.off('close', onClose)
  }
}
