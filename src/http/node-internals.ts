// Every use of a private part of Node: docs/dev/private-parts.md lists them with their reasons and tests.
import { type IncomingMessage, ServerResponse } from 'node:http'

/**
 * Creates a response on the connection of a request that Node handed over with an `upgrade` event. Neither the
 * constructor nor `assignSocket` is documented.
 *
 * Can go when Node 24.9 is the oldest supported version and its `shouldUpgradeCallback` decides before the event.
 * https://github.com/nodejs/node/pull/59824
 */
export function attachResponse(request: IncomingMessage): ServerResponse {
  const response = new ServerResponse(request)
  response.assignSocket(request.socket)
  return response
}
