// Who saw what: the upstream's requests and the access log's lines, by the address that they came from.
import type { Seen } from '../observed-upstream.ts'
import type { Arena } from './arena.ts'

export interface Testimony {
  readonly seen: Seen[]
  /** Requests that the gateway says it forwarded, or tried to. */
  forwarded: number
}

export interface Witness {
  /** What is known of an address by now, once upstream and log agree; forgotten with this. */
  of(from: string): Promise<Testimony>
  /** What is known of addresses that nobody asked about, or that came late. */
  rest(): Map<string, Testimony>
  /** The uses of the free user, as the log has them: forwarded, and given up after they may have been counted. */
  readonly uses: { forwarded: number; unknown: number }
}

/**
 * What a route's request is told before it is forwarded. Anything else comes after: a body that stands still or
 * breaks off is refused while the upstream has its head already.
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
      // The line is written when the answer is over, the request arrives before: a moment apart at most.
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
