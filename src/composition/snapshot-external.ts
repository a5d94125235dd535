// Sets up the sign-in with other identity providers.
import { createExternalAccounts } from '../accounts/external/external-accounts.ts'
import type { Passwords } from '../accounts/password.ts'
import type { Sessions } from '../accounts/sessions.ts'
import type { Plans } from '../config/plans.ts'
import type { Config, ProviderConfig } from '../config/sections/schema.ts'
import { createExternalEndpoints } from '../endpoints/external-sign-in.ts'
import type { AttemptGuess } from '../endpoints/failed-login-limiter.ts'
import type { PublicEndpoint } from '../endpoints/local-endpoint.ts'
import { createLogThrottle } from '../observability/log-throttle.ts'
import { createAttempts } from '../providers/attempts.ts'
import { createProvider, type Provider } from '../providers/provider.ts'
import type { RateLimiters } from '../storage/rate-limiter.ts'
import type { ServingProcess } from './process.ts'
import type { ResourceScope } from './snapshot-resources.ts'

interface Dependencies {
  serving: ServingProcess
  resources: ResourceScope
  plans: Plans
  passwords: Passwords
  sessions: Sessions
  limiters: Pick<RateLimiters, 'external'>
  attemptGuess: AttemptGuess
  changesVisible(): Promise<void>
}

export function createExternalSignIn(
  { auth, server }: Pick<Config, 'auth' | 'server'>,
  dependencies: Dependencies,
): PublicEndpoint[] {
  const { serving, resources, plans, passwords, sessions, limiters, attemptGuess } = dependencies
  const { stores, clock, logger, failureLog, cookieKeys } = serving
  const throttle = createLogThrottle(clock)
  return createExternalEndpoints({
    providers: auth.providers.map(provider => openProvider(provider, serving, resources)),
    returnUrls: auth.return_urls,
    publicUrl: server.public_url,
    attempts: createAttempts({
      keys: cookieKeys,
      isSecure: server.public_url?.startsWith('https:') === true,
      clock,
    }),
    accounts: createExternalAccounts({
      store: stores.signIns,
      codes: stores.signInCodes,
      users: stores.users,
      passwords,
      sessions,
      findProvider: name => auth.providers.find(provider => provider.name === name),
      firstPlan: plans.first.name,
      clock,
      changesVisible: dependencies.changesVisible,
    }),
    codes: stores.signInCodes,
    limiter: limiters.external,
    attemptGuess,
    clock,
    // Any client can cause this failure with an invalid ID token, so the number of log lines is limited.
    onProviderFailure(provider, { reason, message: problem }) {
      const failures = throttle(`${provider} ${reason}`)
      if (failures !== undefined)
        logger.warn({ provider, reason, problem, failures }, 'sign-in with an identity provider failed')
    },
    onStoreFailure: failureLog,
  })
}

/** If a reload does not change the settings of a provider, its discovery document and keys stay in memory. */
function openProvider(
  config: ProviderConfig,
  { clock, metrics }: ServingProcess,
  { kinds, getOrCreate }: ResourceScope,
): Provider {
  return getOrCreate(kinds.providers, JSON.stringify(config), () => ({
    value: createProvider({
      config,
      clock,
      onRequest: outcome => metrics.counters.countProviderRequest(config.name, outcome),
    }),
  }))
}
