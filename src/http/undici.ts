// The parts of undici that the gateway uses: its index also loads fetch, WebSocket and caches, 46 ms and 9 MB.
import request from 'undici/lib/api/api-request.js'
import buildConnector from 'undici/lib/core/connect.js'
import errors from 'undici/lib/core/errors.js'
import Client from 'undici/lib/dispatcher/client.js'
import Dispatcher from 'undici/lib/dispatcher/dispatcher.js'

// As the index does.
Dispatcher.prototype.request = request

export { buildConnector, Client, errors }
