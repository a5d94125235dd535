// What was thrown, as the refusal that a client is told.
import { STATUS_CODES } from 'node:http'
import { Refusal, serviceUnavailable } from '../refusals/refusal.ts'
import { StorageError } from '../storage/database.ts'

/** What was thrown, as the refusal that the client is told; `undefined` faults become 500 `internal`. */
export function toRefusal(thrown: unknown): Refusal {
  if (thrown instanceof Refusal) return thrown
  if (thrown instanceof StorageError) return serviceUnavailable(thrown)
  return new Refusal('internal', { cause: thrown })
}

/** The answer as bytes for a socket on which there is no request: what the HTTP parser refused. */
export function serializeRefusal({ status, response: { fields, body } }: Refusal): Buffer {
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`]
  for (let i = 0; i < fields.length; i += 2) lines.push(`${fields[i]}: ${fields[i + 1]}`)
  return Buffer.from(`${lines.join('\r\n')}\r\nconnection: close\r\n\r\n${body}`, 'latin1')
}
