// Sends one request on and streams its answer back, with back-pressure both ways and nothing buffered whole.
import type { ServerResponse } from 'node:http'
import { ClientGone } from '../refusals/client-gone.ts'
import { dispatch } from './dispatch.ts'
import type { Forwarding } from './forward-options.ts'
import type { Connection } from './targets/connection.ts'
import type { Connections } from './targets/connection-pool.ts'
import type { Target } from './targets/target.ts'

/** Once something has been answered a failure breaks the client's connection: half an answer never looks whole. */
export function forward(forwarding: Forwarding): void {
  attempt(forwarding, forwarding.upstream.choose(), forwarding.upstream.retries)
}

/** @param retries how often it may still be sent again, where nothing of an answer has come */
function attempt(forwarding: Forwarding, target: Target, retries: number): void {
  const connection = target.connections.tryTake()
  if (connection !== undefined) send(forwarding, target, connection, retries)
  else {
    waitForOne(target.connections, forwarding.response).then(
      freed => send(forwarding, target, freed, retries),
      thrown => forwarding.observer.onRefused(thrown),
    )
  }
}

function send(forwarding: Forwarding, target: Target, connection: Connection, retries: number): void {
  // A response that has closed closes no second time: what were dispatched now would never end.
  if (forwarding.response.destroyed) {
    connection.putBack()
    forwarding.observer.onRefused(new ClientGone())
  } else dispatch(forwarding, target, connection, retries, again)
}

function again(forwarding: Forwarding, failed: Target, retries: number): void {
  attempt(forwarding, forwarding.upstream.choose(failed), retries - 1)
}

async function waitForOne(connections: Connections, response: ServerResponse): Promise<Connection> {
  let onClose = () => {}
  try {
    return await connections.take(leave => {
      onClose = leave
      response.on('close', leave)
    })
  } finally {
    response.off('close', onClose)
  }
}
