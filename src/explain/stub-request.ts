// Creates a request that did not come from a network, and a response that is never sent.
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'

/** Pairs of a header name and its value. In a request, each name occurs only once. */
export type HeaderList = readonly (readonly [name: string, value: string])[]

interface StubRequestOptions {
  method: string
  path: string
  fields: HeaderList
  /** Whether the request counts as received over TLS. */
  isEncrypted: boolean
}

/** An address that no real client has, because RFC 5737 reserves it for documentation. */
const clientAddress = '192.0.2.1'

export function createStubRequest({
  method,
  path,
  fields,
  isEncrypted,
}: StubRequestOptions): IncomingMessage {
  const socket = new Socket()
  Object.defineProperty(socket, 'remoteAddress', { value: clientAddress })
  if (isEncrypted) Object.defineProperty(socket, 'encrypted', { value: true })
  const request = new IncomingMessage(socket)
  return Object.assign(request, {
    method,
    url: path,
    httpVersion: '1.1',
    httpVersionMajor: 1,
    httpVersionMinor: 1,
    rawHeaders: fields.flat(),
    headers: Object.fromEntries(fields.map(([name, value]) => [name.toLowerCase(), value])),
    complete: true,
    // Node's parser sets `upgrade` for requests with an `Upgrade` header, but this stub has no parser. `upgrade` can
    // always be true here, because the gateway also checks the headers.
    upgrade: true,
  })
}

export interface ResponseHead {
  readonly status: number
  readonly fields: HeaderList
}

/** @param onHead the function that receives the response head that would be sent */
export function createStubResponse(
  request: IncomingMessage,
  onHead: (head: ResponseHead) => void,
): ServerResponse {
  const response = new ServerResponse(request)
  const writeHead = (status: number, ...rest: unknown[]) => {
    // `writeHead` takes an optional reason before the headers, so the headers are the last argument.
    onHead({ status, fields: toHeaderList(rest.at(-1) as readonly string[]) })
    return response
  }
  return Object.assign(response, { writeHead, end: () => response })
}

/** @param rawHeaders alternating names and values */
export function toHeaderList(rawHeaders: readonly string[]): HeaderList {
  return rawHeaders.flatMap((name, index) =>
    index % 2 === 0 ? [[name, rawHeaders[index + 1] as string] as const] : [],
  )
}
