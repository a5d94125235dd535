// Turns anything thrown into a refusal, and a refusal into bytes for a bare socket.
import { STATUS_CODES } from 'node:http'
import { Refusal, serviceUnavailable } from '../refusals/refusal.ts'
import { StorageError } from '../storage/database.ts'

/** Storage errors become 503 `service_unavailable`, any other fault 500 `internal`. */
export function toRefusal(thrown: unknown): Refusal {
  if (thrown instanceof Refusal) return thrown
  if (thrown instanceof StorageError) return serviceUnavailable(thrown)
  return new Refusal('internal', { cause: thrown })
}

/** The response as bytes, for a socket without a request: the HTTP parser rejected what came. */
export function serializeRefusal({ status, response: { fields, body } }: Refusal): Buffer {
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`]
  for (let i = 0; i < fields.length; i += 2) lines.push(`${fields[i]}: ${fields[i + 1]}`)
  return Buffer.from(`${lines.join('\r\n')}\r\nconnection: close\r\n\r\n${body}`, 'latin1')
}
