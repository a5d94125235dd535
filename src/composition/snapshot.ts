// Builds a snapshot: everything that depends on one configuration. A request keeps the same snapshot to its end.
import { randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import { createAccounts } from '../accounts/accounts.ts'
import { createPasswords } from '../accounts/password.ts'
import { newPasswordValidator } from '../accounts/password-rules.ts'
import { createSessions } from '../accounts/sessions.ts'
import { createPlans } from '../config/plans.ts'
import type { Config } from '../config/sections/schema.ts'
import { createAuthEndpoints } from '../endpoints/auth.ts'
import { createEndpointTable } from '../endpoints/endpoint-table.ts'
import { createAttemptGuess } from '../endpoints/failed-login-limiter.ts'
import { createIdentityEndpoints } from '../endpoints/identities.ts'
import { createJwksEndpoint } from '../endpoints/jwks.ts'
import { createKeyEndpoints, scopesOf } from '../endpoints/keys.ts'
import { createRequireLiveCredential, createSignedInEndpoint } from '../endpoints/signed-in.ts'
import { switchedOffOperations } from '../endpoints/switched-off.ts'
import { createUpgradeEndpoints } from '../endpoints/upgrade.ts'
import { createUsageEndpoints } from '../endpoints/usage.ts'
import { createUserEndpoints } from '../endpoints/user.ts'
import { createGate } from '../gate/gate.ts'
import { openTlsCertificate, type TlsCertificate } from '../http/tls-certificate.ts'
import { createAccessLog } from '../proxy/access-log.ts'
import { createAnswerQuestion } from '../proxy/answer-question.ts'
import { createForwardRequest } from '../proxy/forward-request.ts'
import type { RequestSnapshot } from '../proxy/request-context.ts'
import type { TargetEvents } from '../upstream/targets/target.ts'
import type { TargetStatus } from '../upstream/targets/target-status.ts'
import { createUpstreams } from '../upstream/targets/upstreams.ts'
import { createWebhooks } from '../webhooks/webhooks.ts'
import type { ServingProcess } from './process.ts'
import { createAccountEndpoints } from './snapshot-endpoints.ts'
import { createExternalSignIn } from './snapshot-external.ts'
import { createGuardDependencies } from './snapshot-guards.ts'
import type { ResourceScope } from './snapshot-resources.ts'

export interface Snapshot extends RequestSnapshot {
  /** Undefined for plain HTTP. */
  readonly tlsCertificate: TlsCertificate | undefined
  targetStatus(): TargetStatus[]
  /**
   * Call this when the snapshot becomes current. This applies the settings of the snapshot to the resources that it
   * shares with other snapshots.
   */
  activate(): void
  /** Call this when the snapshot is replaced or discarded. Its own resources are closed after its last request. */
  retire(): void
}

interface Dependencies {
  serving: ServingProcess
  /**
   * Provides the resources that this snapshot can share with other snapshots. The scope is released after the last
   * request of the retired snapshot, or if the snapshot cannot be built.
   */
  resources: ResourceScope
  /** Resolves when database changes are visible in every process. */
  changesVisible(): Promise<void>
}

/**
 * @throws KeyError for unreadable signing keys; CertificateError or CertificateAuthorityError for an unusable TLS file
 */
export async function createSnapshot(config: Config, dependencies: Dependencies): Promise<Snapshot> {
  try {
    return await build(config, dependencies)
  } catch (error) {
    await dependencies.resources.release()
    throw error
  }
}

async function build(
  config: Config,
  { serving, resources, changesVisible }: Dependencies,
): Promise<Snapshot> {
  const { auth, server } = config
  const { clock, logger, stores, pendingRevocations, openStreams, metrics } = serving
  const { kinds, getOrCreate } = resources
  const { tls } = server
  const plans = createPlans(config.plans)
  const tlsCertificate =
    tls &&
    getOrCreate(kinds.tlsCertificates, JSON.stringify(tls), () => {
      const value = openTlsCertificate(tls, { clock, logger })
      return { value, quiesce: value.stop, close: value.stop }
    })
  const { guardDependencies, assertions, keys, tokens, limiters } = await createGuardDependencies(
    config,
    serving,
    resources,
  )
  const accessEnded = auth.logout_ends_access ? changesVisible : async () => {}
  const sessions = createSessions({
    accessEnded,
    store: stores.sessions,
    tokens,
    pendingRevocations,
    clock,
    reuse: auth.refresh_reuse,
    sessionMaxMs: auth.session_max,
  })
  const passwords = getOrCreate(kinds.passwords, JSON.stringify(auth.hashing), () => ({
    value: createPasswords(auth.hashing),
  }))
  const validateNewPassword = newPasswordValidator(auth.common_passwords)
  const accounts = createAccounts({
    users: stores.users,
    firstPlan: plans.first.name,
    passwords,
    validateNewPassword,
    sessions,
  })
  const upstreams = createUpstreams(config.upstreams, {
    lookups: serving.nameLookups,
    durationsOf: metrics.upstream,
    reuse: (name, open) =>
      getOrCreate(kinds.targets, name, () => {
        const value = open()
        return { value, quiesce: value.quiesce, close: value.close }
      }),
    eventsOf: (upstream, target) => logLookups(logger, { upstream, target }),
  })
  const requireLiveCredential = createRequireLiveCredential({
    sessions: stores.sessions,
    apiKeys: stores.apiKeys,
    clock,
  })
  const signedIn = createSignedInEndpoint(requireLiveCredential)
  const attemptGuess = createAttemptGuess(serving.failedLogins, limiters)
  const account = createAccountEndpoints(config, {
    serving,
    passwords,
    validateNewPassword,
    sessions,
    attemptGuess,
    createRateLimiter: guardDependencies.createRateLimiter,
    requireLiveCredential,
    signedIn,
    changesVisible,
  })
  const findLocalPath = createEndpointTable(
    [
      ...createAuthEndpoints({
        accounts,
        sessions,
        limiters,
        attemptGuess,
        onRegistered: account.onRegistered,
      }),
      ...account.endpoints,
      ...createExternalSignIn(config, {
        serving,
        resources,
        plans,
        passwords,
        sessions,
        limiters,
        attemptGuess,
        changesVisible,
      }),
      ...createUserEndpoints({
        plans,
        apiTokens: stores.apiTokens,
        limiter: limiters.keys,
        webhooks: createWebhooks(config.webhooks, serving),
        randomBytes,
        clock,
        requireLiveCredential,
        changesVisible,
      }),
      ...createKeyEndpoints({
        plans,
        scopes: scopesOf(config.routes),
        userKeys: stores.userKeys,
        limiter: limiters.keys,
        randomBytes,
        clock,
        requireLiveCredential,
        signedIn,
        changesVisible,
      }),
      ...createIdentityEndpoints({
        identities: stores.identities,
        providers: auth.providers,
        requireLiveCredential,
        signedIn,
      }),
      ...createUsageEndpoints({ plans, quotaRecords: stores.quotaRecords }),
      createJwksEndpoint(keys.jwks),
    ],
    createUpgradeEndpoints(config.subscription.upgrade_url, plans.names),
    switchedOffOperations(config),
  )
  const gate = await createGate({
    config,
    plans,
    findLocalPath,
    dependencies: guardDependencies,
    upstreams,
    decisions: metrics.counters.guards,
    clock,
  })
  await upstreams.whenResolved()
  let activeRequests = 0
  let isRetired = false
  const releaseIfOver = () => {
    if (!isRetired || activeRequests > 0) return
    resources
      .release()
      .catch(error =>
        logger.warn({ err: error }, 'resources of the previous configuration could not be closed'),
      )
  }
  return {
    gate,
    forward: createForwardRequest(assertions, openStreams, {
      bodyIdleTimeoutMs: server.timeouts.body_idle,
      logoutEndsStreams: auth.logout_ends_access,
    }),
    answerQuestion: createAnswerQuestion(assertions),
    accessEnded,
    language: server.language,
    bodyIdleMs: server.timeouts.body_idle,
    logOrigin: serving.logOrigin,
    logRequest: createAccessLog(logger, server.log),
    tlsCertificate,
    onRefusal(requestId, { code, cause }) {
      if (cause !== undefined) serving.failureLog(code, cause, () => ({ request_id: requestId }))
    },
    targetStatus: upstreams.targetStatus,
    activate: upstreams.activate,
    acquire() {
      activeRequests += 1
    },
    release() {
      activeRequests -= 1
      releaseIfOver()
    },
    retire() {
      isRetired = true
      resources.quiesce()
      releaseIfOver()
    },
  }
}

function logLookups(logger: Logger, place: { upstream: string; target: string }): TargetEvents {
  return {
    onLookup: problem =>
      problem === undefined
        ? logger.info(place, 'target name resolved again')
        : logger.warn({ ...place, problem }, 'target name not resolved; the previous addresses stay in use'),
    onTooMany: addresses =>
      logger.warn({ ...place, addresses }, 'target name has more addresses than resolve.most'),
  }
}
