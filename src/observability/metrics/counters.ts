// Defines the counters. They are plain numbers, which the code increments where an event happens.
import { byLabel, counter, type Family, family, unlabeledSample } from './families.ts'

/** The decisions of one guard. `error` counts decisions that were impossible because storage failed. */
export interface GuardCounts {
  pass: number
  refuse: number
  error: number
}

/** The numbers of decisions, by the name of the guard. `peage explain` uses the same names. */
export type GuardDecisions = Readonly<
  Record<
    | 'authenticate'
    | 'rate_limit'
    | 'scope'
    | 'plan'
    | 'verified'
    | 'max_body'
    | 'target'
    | 'quota'
    | 'free_daily',
    GuardCounts
  >
>

/**
 * Results of cache lookups for users, API keys and sessions. While the change feed does not work, lookups skip the
 * cache and are counted as `bypass`.
 */
export interface CacheResults {
  hit: number
  miss: number
  bypass: number
}

/** Results of attempts to deliver a message. `retried` counts failed attempts after which another attempt follows. */
export interface DeliveryOutcomes {
  delivered: number
  retried: number
  failed: number
}

/** Counts each attempt to send a mail, by kind of mail. An attempt is counted when it ends. */
export interface MailOutcomes {
  /**
   * From now on, exposes the counts of these kinds with every outcome, even if a count is 0. Prometheus then sees the
   * first failure as an increase from 0 to 1.
   */
  expose(kinds: readonly string[]): void
  count(kind: string, outcome: 'sent' | 'retried' | 'failed'): void
}

/**
 * The result of a reload. After `refused`, the previous configuration is still active. After `incomplete`, the new
 * configuration is active, but some workers did not activate it in time. These workers are being replaced.
 */
export type ReloadResult = 'success' | 'refused' | 'incomplete'

export interface Counters {
  readonly guards: GuardDecisions
  readonly identityCache: CacheResults
  readonly deliveries: DeliveryOutcomes
  readonly mails: MailOutcomes
  /** Attempts to send events to `events.url`. */
  readonly events: DeliveryOutcomes
  /** Daily uses that were counted only in Postgres, because Redis failed. */
  dailyUsageFallbacks: number
  /** The number of requests with X-Forwarded-For from a private address that is not a trusted proxy. */
  untrustedForwarders: number
  /** Counts a request of the gateway to an identity provider. @param provider the name in `auth.providers` */
  countProviderRequest(provider: string, outcome: string): void
  /** @param outcome `success`, an error code, or `client_gone` */
  countAuth(endpoint: string, outcome: string): void
  countReload(outcome: ReloadResult): void
  /**
   * Call this when the last reload was `incomplete` and its configuration is now active in every process. In
   * `peage_config_reloads_total`, this reload still counts as a failure.
   */
  completeReload(): void
  lastReload(): ReloadResult
  readonly families: readonly Family[]
}

export function createCounters(): Counters {
  const zeroCounts = (): GuardCounts => ({ pass: 0, refuse: 0, error: 0 })
  const auth: Counts = new Map()
  const mails: Counts = new Map()
  const providers: Counts = new Map()
  const reloads = { success: 0, failure: 0 }
  let lastReload: ReloadResult = 'success'
  const counters: Counters = {
    guards: {
      authenticate: zeroCounts(),
      rate_limit: zeroCounts(),
      scope: zeroCounts(),
      plan: zeroCounts(),
      verified: zeroCounts(),
      max_body: zeroCounts(),
      target: zeroCounts(),
      quota: zeroCounts(),
      free_daily: zeroCounts(),
    },
    identityCache: { hit: 0, miss: 0, bypass: 0 },
    deliveries: { delivered: 0, retried: 0, failed: 0 },
    mails: {
      expose(kinds) {
        for (const kind of kinds) if (!mails.has(kind)) mails.set(kind, { sent: 0, retried: 0, failed: 0 })
      },
      count: (kind, outcome) => countIn(mails, kind, outcome),
    },
    events: { delivered: 0, retried: 0, failed: 0 },
    dailyUsageFallbacks: 0,
    untrustedForwarders: 0,
    countProviderRequest: (provider, outcome) => countIn(providers, provider, outcome),
    countAuth: (endpoint, outcome) => countIn(auth, endpoint, outcome),
    countReload(outcome) {
      reloads[outcome === 'success' ? 'success' : 'failure'] += 1
      lastReload = outcome
    },
    completeReload() {
      lastReload = 'success'
    },
    lastReload: () => lastReload,
    families: [
      counter('peage_guard_decisions_total', 'Decisions of the guards.', () =>
        nested('guard', Object.entries(counters.guards), 'decision'),
      ),
      counter('peage_auth_total', 'Requests to the endpoints under /api/v1/auth, by outcome.', () =>
        nested('endpoint', [...auth], 'outcome'),
      ),
      counter(
        'peage_provider_requests_total',
        'Requests of the gateway to identity providers, by outcome.',
        () => nested('provider', [...providers], 'outcome'),
      ),
      counter(
        'peage_identity_cache_total',
        'Lookups of users, API keys and sessions in the identity cache.',
        () => byLabel('result', { ...counters.identityCache }),
      ),
      counter(
        'peage_daily_usage_fallback_total',
        'Daily uses counted only in Postgres because Redis failed.',
        () => unlabeledSample(counters.dailyUsageFallbacks),
      ),
      counter('peage_webhook_deliveries_total', 'Completed attempts to deliver alerts to webhooks.', () =>
        byLabel('outcome', { ...counters.deliveries }),
      ),
      counter('peage_mails_total', 'Completed attempts to send mails to users.', () =>
        nested('kind', [...mails], 'outcome'),
      ),
      counter('peage_events_total', 'Completed attempts to send events to `events.url`.', () =>
        byLabel('outcome', { ...counters.events }),
      ),
      counter(
        'peage_untrusted_forwarder_requests_total',
        'Requests with X-Forwarded-For from a private address that is not in server.trusted_proxies.',
        () => unlabeledSample(counters.untrustedForwarders),
      ),
      // Every worker performs each reload, so a sum would count a reload once per worker.
      family(
        {
          name: 'peage_config_reloads_total',
          help: 'Reloads of the configuration, by result.',
          type: 'counter',
          aggregator: 'max',
        },
        () => byLabel('result', reloads),
      ),
      family(
        {
          name: 'peage_config_last_reload_successful',
          help: '1 if the last reload is active in every process, 0 if it was refused or is incomplete.',
          type: 'gauge',
          aggregator: 'min',
        },
        () => unlabeledSample(lastReload === 'success' ? 1 : 0),
      ),
    ],
  }
  return counters
}

type Counts = Map<string, Record<string, number>>

function countIn(counts: Counts, name: string, kind: string): void {
  const ofName = counts.get(name) ?? {}
  counts.set(name, ofName)
  ofName[kind] = (ofName[kind] ?? 0) + 1
}

function nested(outer: string, rows: readonly [string, object][], inner: string) {
  return rows.flatMap(([name, counts]) =>
    Object.entries(counts as Record<string, number>).map(([kind, value]) => ({
      labels: { [outer]: name, [inner]: kind },
      value,
    })),
  )
}
