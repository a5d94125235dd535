// Turns a refusal or a fault into its answer: the one place where the gateway says no.
import { STATUS_CODES } from 'node:http'
import { StorageError } from '../backing/database.ts'
import { Refusal, serviceUnavailable } from './refusal.ts'

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** What was thrown, as the refusal that the client is told; `undefined` faults become 500 `internal`. */
export function toRefusal(thrown: unknown): Refusal {
  if (thrown instanceof Refusal) return thrown
  if (thrown instanceof StorageError) return serviceUnavailable(thrown)
  return new Refusal('internal', { cause: thrown })
}

/** CONTRACT §4: JSON, `Cache-Control: no-store`, the code in `X-Peage-Error`. */
export function answerOf(refusal: Refusal): Answer {
  return {
    status: refusal.status,
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'no-store',
      'x-peage-error': refusal.code,
      ...refusal.headers,
    },
    body: JSON.stringify(refusal.body),
  }
}

/** The answer as bytes for a socket on which there is no request: what the HTTP parser refused. */
export function rawAnswer(refusal: Refusal): string {
  const { status, headers, body } = answerOf(refusal)
  const fields = { ...headers, 'content-length': String(Buffer.byteLength(body)), connection: 'close' }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n${body}`
}
