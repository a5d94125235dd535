// Collects the requests at the upstream and the lines of the access log, by client address.
import type { Seen } from '../observed-upstream.ts'
import type { Arena } from './arena.ts'

export interface Testimony {
  readonly seen: Seen[]
  /** The number of requests that the gateway forwarded or tried to forward, according to its access log. */
  forwarded: number
}

export interface Witness {
  /**
   * Waits up to one second until the access log contains each request that the upstream received from this address.
   * Then returns the records of the address and removes them.
   */
  of(from: string): Promise<Testimony>
  /** Returns the records that are left, including late ones, and removes them. */
  rest(): Map<string, Testimony>
  /**
   * The requests of the user with the plan `free` to the route `daily`, according to the access log. `forwarded`: the
   * number of forwarded requests. `unknown`: the number of requests whose client left. The log does not show whether
   * the gateway counted these requests as uses.
   */
  readonly uses: { forwarded: number; unknown: number }
}

/**
 * The decisions that the gateway makes before it forwards a request. With any other decision, the upstream may already
 * have received the head of the request, for example if the body then stalls.
 */
const atTheGuards = new Set([
  'answered',
  'token_invalid',
  'key_check_failed',
  'unauthenticated',
  'plan_insufficient',
  'daily_limit_reached',
  'rate_limited',
  'service_unavailable',
  'internal',
])

export function createWitness({ gateway, upstream, free }: Arena): Witness {
  const known = new Map<string, Testimony>()
  const uses = { forwarded: 0, unknown: 0 }
  const about = (from: string) => {
    const testimony = known.get(from) ?? { seen: [], forwarded: 0 }
    known.set(from, testimony)
    return testimony
  }
  function hear(): void {
    for (const seen of upstream.seen.splice(0)) {
      const from = seen.fields.filter(([name]) => name.toLowerCase() === 'x-forwarded-for')
      about(from.map(([, text]) => text).join()).seen.push(seen)
    }
    for (const line of gateway.log.splice(0)) {
      const entry = JSON.parse(line) as Record<string, unknown>
      if (entry.msg !== 'request') continue
      const decision = String(entry.decision)
      if (entry.route === undefined || atTheGuards.has(decision)) continue
      about(String(entry.client)).forwarded += 1
      if (entry.route !== 'daily' || String(entry.user_id) !== free.id) continue
      if (decision === 'client_gone') uses.unknown += 1
      else uses.forwarded += 1
    }
  }
  return {
    uses,
    async of(from) {
      // Waits up to a second, because the gateway logs a request later than the upstream receives it.
      for (let turn = 0; turn < 200; turn++) {
        hear()
        const { seen, forwarded } = known.get(from) ?? { seen: [], forwarded: 0 }
        if (seen.length <= forwarded && seen.every(({ complete }) => complete)) break
        await new Promise(resolve => setTimeout(resolve, turn < 5 ? 1 : 5))
      }
      const testimony = known.get(from) ?? { seen: [], forwarded: 0 }
      known.delete(from)
      return testimony
    },
    rest() {
      hear()
      const rest = new Map(known)
      known.clear()
      return rest
    },
  }
}
