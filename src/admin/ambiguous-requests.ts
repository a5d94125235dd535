// Refuses what a proxy in front may have read otherwise: who asks, and under which name, must not depend on the reader.
import type { IncomingMessage } from 'node:http'
import { Refusal } from '../refusals/refusal.ts'

/**
 * Refuses a request with two `Host` fields, or an `Expect` other than `100-continue`, as the client listener does
 * (CONTRACT §4).
 * @throws Refusal 400 `request_invalid`
 */
export function rejectMalformed({
  headers: { expect },
  headersDistinct: { host = [] },
}: Pick<IncomingMessage, 'headers' | 'headersDistinct'>): void {
  const isMalformed = host.length > 1 || (expect !== undefined && expect.toLowerCase() !== '100-continue')
  if (isMalformed) throw new Refusal('request_invalid', { headers: { connection: 'close' } })
}

/** Node takes the first of two `Authorization`. @throws Refusal 400 `credentials_ambiguous` */
export function rejectAmbiguousCredentials({
  headersDistinct: { authorization = [] },
}: Pick<IncomingMessage, 'headersDistinct'>): void {
  if (authorization.length > 1) throw new Refusal('credentials_ambiguous')
}
