// Builds a request as node:http would, but without a connection. Repeated headers stay separate in `rawHeaders`.
import type { IncomingMessage } from 'node:http'
import { createStubRequest, type HeaderList } from '../../src/explain/stub-request.ts'

interface Received {
  method?: string
  /** The request target, for example `/a?b=c`. */
  path?: string
  httpVersion?: '1.0' | '1.1' | '2.0'
  /** The peer's address. */
  peer?: string
}

export function aRequest(
  fields: HeaderList,
  { method = 'GET', path = '/', httpVersion = '1.1', peer = '192.0.2.1' }: Received = {},
): IncomingMessage {
  const request = createStubRequest({ method, path, fields, isEncrypted: false })
  const [httpVersionMajor, httpVersionMinor] = httpVersion.split('.').map(Number)
  Object.defineProperty(request, 'socket', { value: { remoteAddress: peer } })
  return Object.assign(request, { httpVersion, httpVersionMajor, httpVersionMinor })
}
