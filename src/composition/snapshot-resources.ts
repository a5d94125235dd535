// Counts the snapshots that use a shared resource. The resource is closed when its last snapshot releases it.
import type { Passwords } from '../accounts/password.ts'
import type { TlsCertificate } from '../http/tls-certificate.ts'
import type { SessionCache } from '../identity/cache/session-cache.ts'
import type { TokenCache } from '../identity/cache/token-cache.ts'
import type { UserCache } from '../identity/cache/user-cache.ts'
import type { SigningKeys } from '../identity/keys/signing-keys.ts'
import type { Assertions } from '../identity/tokens/assertions.ts'
import type { Provider } from '../providers/provider.ts'
import type { RateLimiter } from '../storage/rate-limiter.ts'
import type { OpenTarget } from '../upstream/targets/target.ts'
import type { DailyCounter } from '../usage/daily-counter.ts'
import type { ExhaustedQuotas } from '../usage/exhausted-quotas.ts'
import type { ExhaustedUsers } from '../usage/exhausted-users.ts'

export interface Resource<T> {
  readonly value: T
  /**
   * Called when no active snapshot uses the resource any more. Requests of retired snapshots may still use the
   * resource.
   */
  quiesce?(): void
  /** Called when no snapshot uses the resource any more. */
  close?(): void | Promise<void>
}

/** Maps names to resources of one kind that the next snapshot can reuse. Quiesced resources are removed. */
class Reusable<T> extends Map<string, Entry<T>> {}

function createKinds() {
  return {
    tlsCertificates: new Reusable<TlsCertificate>(),
    signingKeys: new Reusable<Promise<SigningKeys>>(),
    rateLimiters: new Reusable<RateLimiter>(),
    tokenCaches: new Reusable<TokenCache>(),
    userCaches: new Reusable<UserCache>(),
    sessionCaches: new Reusable<SessionCache>(),
    dailyCounters: new Reusable<DailyCounter>(),
    exhaustedUsers: new Reusable<ExhaustedUsers>(),
    exhaustedQuotas: new Reusable<ExhaustedQuotas>(),
    assertions: new Reusable<Assertions>(),
    passwords: new Reusable<Passwords>(),
    providers: new Reusable<Provider>(),
    targets: new Reusable<OpenTarget>(),
  }
}

export interface ResourceScope {
  readonly kinds: ReturnType<typeof createKinds>
  /**
   * Returns the resource with this name, or creates it. `name` contains every setting that the resource depends on, so
   * a resource with different settings has a different name.
   */
  getOrCreate<T>(kind: Reusable<T>, name: string, make: () => Resource<T>): T
  /** Call this when the snapshot is no longer active. */
  quiesce(): void
  /** Call this after the snapshot's last request. Resolves when every resource that no other scope uses is closed. */
  release(): Promise<void>
}

interface ResourcePool {
  openScope(): ResourceScope
  /** Closes all open resources, even those still in use. */
  close(): Promise<void>
}

interface Entry<T = unknown> {
  readonly resource: Resource<T>
  /** Number of scopes that use the resource, including quiesced scopes. */
  references: number
  /** Number of scopes that use the resource and are not quiesced. */
  activeReferences: number
  /** Prevents later scopes from reusing the resource. */
  withdraw(): void
}

export function createResourcePool(): ResourcePool {
  const kinds = createKinds()
  const open = new Set<Entry>()

  async function close(entries: Iterable<Entry>): Promise<void> {
    await Promise.all([...entries].map(entry => (open.delete(entry) ? entry.resource.close?.() : undefined)))
  }

  return {
    openScope() {
      const entries = new Set<Entry>()
      let isQuiesced = false
      const quiesce = () => {
        if (isQuiesced) return
        isQuiesced = true
        for (const entry of entries) {
          entry.activeReferences -= 1
          if (entry.activeReferences > 0) continue
          entry.withdraw()
          entry.resource.quiesce?.()
        }
      }
      return {
        kinds,
        getOrCreate(kind, name, make) {
          const withdraw = () => kind.delete(name)
          const entry = kind.get(name) ?? { resource: make(), references: 0, activeReferences: 0, withdraw }
          if (!entries.has(entry)) {
            entry.references += 1
            entry.activeReferences += 1
          }
          entries.add(entry)
          kind.set(name, entry)
          open.add(entry)
          return entry.resource.value
        },
        quiesce,
        async release() {
          quiesce()
          const left = [...entries]
          entries.clear()
          await close(left.filter(entry => --entry.references === 0))
        },
      }
    },
    close: () => close(open),
  }
}
