// How many mails may be asked for, by the address that they would go to and by the client's (CONTRACT §12, "Mail").
import type { RateLimiter } from '../storage/rate-limiter.ts'

/** Counts a request, before anybody is looked up. */
export interface MailLimits {
  /**
   * @param client its rate-limit key
   * @param addresses that mails would go to: over the limit of one, none is sent, or a change could be asked for
   * without the notice of it
   * @returns whether all limits allow the request; the client is told nothing of it
   */
  allow(client: string, addresses: readonly string[]): Promise<boolean>
}

export function createMailLimits(limiters: {
  perEmail: Pick<RateLimiter, 'consume'>
  perAddress: Pick<RateLimiter, 'consume'>
}): MailLimits {
  return {
    // The client's first: a client over its own limit cannot use up those of others.
    async allow(client, addresses) {
      if (!(await limiters.perAddress.consume(client)).allowed) return false
      const results = await Promise.all(addresses.map(address => limiters.perEmail.consume(address)))
      return results.every(({ allowed }) => allowed)
    },
  }
}
