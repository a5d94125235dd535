// What is counted where it happens: plain numbers, which whoever counts is handed and adds to.
import { byLabel, counter, type Family, family, unlabeledSample } from './families.ts'

/** How one guard decided; `error` is where it could not, because a store failed. */
export interface GuardCounts {
  pass: number
  refuse: number
  error: number
}

/** By the names that `peage explain` prints. */
export type GuardDecisions = Readonly<
  Record<'authenticate' | 'rate_limit' | 'plan' | 'max_body' | 'target' | 'free_daily', GuardCounts>
>

/** Look-ups of users and of keys; `bypass` is one past the memory, while changes are not heard. */
export interface CacheResults {
  hit: number
  miss: number
  bypass: number
}

/** How attempts at deliveries ended; `retried` is one that another follows. */
export interface DeliveryOutcomes {
  delivered: number
  retried: number
  failed: number
}

export interface Counters {
  readonly guards: GuardDecisions
  readonly identityCache: CacheResults
  readonly deliveries: DeliveryOutcomes
  /** Uses that were counted in Postgres alone because Redis failed. */
  dailyUsageFallbacks: number
  /** Requests of peers that forward for others and are not trusted. */
  untrustedForwarders: number
  /** @param outcome `success`, a refusal's code, or `client_gone` */
  countAuth(endpoint: string, outcome: string): void
  /** A reload of the configuration was tried; one that is refused leaves the old one in force. */
  countReload(result: 'success' | 'failure'): void
  /** Whether what is in force is what was saved last, as far as that is known. */
  isLastReloadGood(): boolean
  readonly families: readonly Family[]
}

export function createCounters(): Counters {
  const zeroCounts = (): GuardCounts => ({ pass: 0, refuse: 0, error: 0 })
  const auth = new Map<string, Record<string, number>>()
  const reloads = { success: 0, failure: 0 }
  let isLastReloadGood = true
  const counters: Counters = {
    guards: {
      authenticate: zeroCounts(),
      rate_limit: zeroCounts(),
      plan: zeroCounts(),
      max_body: zeroCounts(),
      target: zeroCounts(),
      free_daily: zeroCounts(),
    },
    identityCache: { hit: 0, miss: 0, bypass: 0 },
    deliveries: { delivered: 0, retried: 0, failed: 0 },
    dailyUsageFallbacks: 0,
    untrustedForwarders: 0,
    countAuth(endpoint, outcome) {
      const outcomes = auth.get(endpoint) ?? {}
      auth.set(endpoint, outcomes)
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
    },
    countReload(result) {
      reloads[result] += 1
      isLastReloadGood = result === 'success'
    },
    isLastReloadGood: () => isLastReloadGood,
    families: [
      counter('peage_guard_decisions_total', 'Decisions of the guards, where they had one to make.', () =>
        nested('guard', Object.entries(counters.guards), 'decision'),
      ),
      counter('peage_auth_total', 'Requests to the endpoints under /api/v1/auth, by what came of them.', () =>
        nested('endpoint', [...auth], 'outcome'),
      ),
      counter('peage_identity_cache_total', 'Look-ups of users and API keys in memory.', () =>
        byLabel('result', { ...counters.identityCache }),
      ),
      counter('peage_daily_usage_fallback_total', 'Daily uses counted in Postgres alone: Redis failed.', () =>
        unlabeledSample(counters.dailyUsageFallbacks),
      ),
      counter('peage_webhook_deliveries_total', 'Attempts at deliveries to webhooks that have ended.', () =>
        byLabel('outcome', { ...counters.deliveries }),
      ),
      counter(
        'peage_untrusted_forwarder_requests_total',
        'Requests with X-Forwarded-For from a private address that is not in server.trusted_proxies.',
        () => unlabeledSample(counters.untrustedForwarders),
      ),
      // Every worker reloads each time: a sum would count them all.
      family(
        {
          name: 'peage_config_reloads_total',
          help: 'Reloads of the configuration that were tried.',
          type: 'counter',
          aggregator: 'max',
        },
        () => byLabel('result', reloads),
      ),
      family(
        {
          name: 'peage_config_last_reload_successful',
          help: 'Whether the configuration in force is the file’s: 0 where the last reload was refused.',
          type: 'gauge',
          aggregator: 'min',
        },
        () => unlabeledSample(isLastReloadGood ? 1 : 0),
      ),
    ],
  }
  return counters
}

function nested(outer: string, rows: readonly [string, object][], inner: string) {
  return rows.flatMap(([name, counts]) =>
    Object.entries(counts as Record<string, number>).map(([kind, value]) => ({
      labels: { [outer]: name, [inner]: kind },
      value,
    })),
  )
}
