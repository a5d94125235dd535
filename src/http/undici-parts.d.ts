// What the files of undici export that undici.ts loads: the same as its index.
declare module 'undici/lib/dispatcher/client.js' {
  import { Client } from 'undici'
  export = Client
}
declare module 'undici/lib/dispatcher/dispatcher.js' {
  import { Dispatcher } from 'undici'
  export = Dispatcher
}
declare module 'undici/lib/api/api-request.js' {
  import { Dispatcher } from 'undici'

  const request: Dispatcher['request']
  export = request
}
declare module 'undici/lib/core/connect.js' {
  import { buildConnector } from 'undici'
  export = buildConnector
}
declare module 'undici/lib/core/constants.js' {
  const constants: { headerNameLowerCasedRecord: Record<string, string> }
  export = constants
}
declare module 'undici/lib/core/errors.js' {
  import { errors } from 'undici'
  export = errors
}
declare module 'undici/lib/util/timers.js' {
  const timers: { readonly kFastTimer: unique symbol }
  export = timers
}
