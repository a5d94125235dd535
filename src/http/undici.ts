// The parts of undici that the gateway uses: its index also loads fetch, WebSocket and caches, 46 ms and 9 MB.
import request from 'undici/lib/api/api-request.js'
import buildConnector from 'undici/lib/core/connect.js'
import constants from 'undici/lib/core/constants.js'
import errors from 'undici/lib/core/errors.js'
import Client from 'undici/lib/dispatcher/client.js'
import Dispatcher from 'undici/lib/dispatcher/dispatcher.js'
import timers from 'undici/lib/util/timers.js'

// As the index does.
Dispatcher.prototype.request = request

// Names that most forwarded requests carry: undici would check each of them every time.
for (const name of [
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-request-id',
  'x-user-id',
  'x-user-plan',
])
  constants.headerNameLowerCasedRecord[name] = name

/** Marks the timers that undici looks at itself, in place of Node's. */
export const kFastTimer: typeof timers.kFastTimer = timers.kFastTimer

export { buildConnector, Client, errors }
