// Sends one request on and streams its answer back, with back-pressure both ways and nothing buffered whole.
import type { ServerResponse } from 'node:http'
import { ClientDisconnected } from '../refusals/client-gone.ts'
import { dispatch } from './dispatch.ts'
import type { ForwardOptions } from './forward-options.ts'
import type { Connection } from './targets/connection.ts'
import type { ConnectionPool } from './targets/connection-pool.ts'
import type { Target } from './targets/target.ts'

/** Once something has been answered a failure breaks the client's connection: half an answer never looks whole. */
export function forward(options: ForwardOptions): void {
  attempt(options, options.upstream.pickTarget(), options.upstream.retries)
}

/** @param retries how often it may still be sent again, where nothing of an answer has come */
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
  // A response that has closed closes no second time: what were dispatched now would never end.
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
