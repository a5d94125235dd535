// A request that came over no network, and the answer that nobody is sent: what the gate reads, and writes to.
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'

/** Names and values, each name once. */
export type FieldList = readonly (readonly [name: string, value: string])[]

interface Written {
  method: string
  /** The request target, as in a request line. */
  path: string
  fields: FieldList
  /** Whether it would have come over TLS. */
  isEncrypted: boolean
}

/** Of nobody: RFC 5737 keeps it for documentation. */
const clientAddress = '192.0.2.1'

export function requestOf({ method, path, fields, isEncrypted }: Written): IncomingMessage {
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
  })
}

export interface Head {
  readonly status: number
  readonly fields: FieldList
}

/** @param onHead told of the head that would be sent */
export function answerTo(request: IncomingMessage, onHead: (head: Head) => void): ServerResponse {
  const response = new ServerResponse(request)
  const writeHead = (status: number, _reason: unknown, raw: readonly string[]) => {
    onHead({ status, fields: pairsOf(raw) })
    return response
  }
  return Object.assign(response, { writeHead, end: () => response })
}

/** @param raw names and values in turn */
export function pairsOf(raw: readonly string[]): FieldList {
  return raw.flatMap((name, index) => (index % 2 === 0 ? [[name, raw[index + 1] as string] as const] : []))
}
