// All that one configuration makes of a gateway: who is read under it is served by it to the end.
import { randomBytes } from 'node:crypto'
import { createAccounts } from '../accounts/accounts.ts'
import { createPasswords } from '../accounts/password.ts'
import { createSessions } from '../accounts/sessions.ts'
import { inSlices } from '../async/steps.ts'
import type { Config } from '../config/schema/schema.ts'
import { createAuthEndpoints } from '../endpoints/auth.ts'
import { createEndpointTable } from '../endpoints/endpoint-table.ts'
import { createUpgradeEndpoints } from '../endpoints/upgrade.ts'
import { createUserEndpoints } from '../endpoints/user.ts'
import { gateSteps } from '../gate/gate.ts'
import { type Certificates, openCertificates } from '../http/tls-certificate.ts'
import { createAccessLog } from '../proxy/access-log.ts'
import { createForwardRequest } from '../proxy/forward-request.ts'
import type { RequestSnapshot } from '../proxy/request-snapshot.ts'
import type { TargetStanding } from '../upstream/targets/target-status.ts'
import { createUpstreams } from '../upstream/targets/upstreams.ts'
import { openWebhooks } from '../webhooks/open-webhooks.ts'
import { openAsked } from './guard-dependencies.ts'
import type { Lasting } from './process-services.ts'
import type { Holding } from './resources.ts'

export interface InForce extends RequestSnapshot {
  readonly config: Config
  /** Nothing for plain HTTP. */
  readonly certificates: Certificates | undefined
  /** How the targets of all upstreams stand. */
  standing(): TargetStanding[]
  /** It is in force no more, or never will be: what nobody else needs is closed when its last request is over. */
  retire(): void
}

interface Parts {
  lasting: Lasting
  /** Released when it is retired, or cannot be made. */
  holding: Holding
  /** Resolves when changes are in force for all clients. */
  inForce(): Promise<void>
}

/**
 * @throws KeyError where the signing keys cannot be read
 * @throws CertificateError, CertificateAuthorityError where TLS cannot be spoken with what its files hold
 */
export async function openInForce(config: Config, parts: Parts): Promise<InForce> {
  try {
    return await open(config, parts)
  } catch (error) {
    await parts.holding.release()
    throw error
  }
}

async function open(config: Config, { lasting, holding, inForce }: Parts): Promise<InForce> {
  const { auth, server } = config
  const { clock, logger, users, apiTokens, pendingLogouts, openStreams, metrics } = lasting
  const { keep } = holding
  const { tls } = server
  const certificates =
    tls &&
    keep(`certificates ${JSON.stringify(tls)}`, () => {
      const part = openCertificates(tls, { clock, logger })
      return { part, rest: part.stop, close: part.stop }
    })
  const { asked, assertions, keys, tokens, limiters } = await openAsked(config, lasting, keep)
  const sessions = createSessions({
    store: lasting.sessionStore,
    tokens,
    pendingLogouts,
    clock,
    reuse: auth.refresh_reuse,
  })
  const passwords = await keep(`passwords ${JSON.stringify(auth.hashing)}`, () => ({
    part: createPasswords(auth.hashing),
  }))
  const accounts = createAccounts({ users, passwords, sessions })
  const upstreams = createUpstreams(config.upstreams, metrics.upstream, keep)
  const endpoints = createEndpointTable(
    [
      ...createAuthEndpoints({ accounts, sessions, limiters, failures: lasting.failures }),
      ...createUserEndpoints({
        apiTokens,
        webhooks: openWebhooks(config.webhooks, lasting),
        randomBytes,
        clock,
        inForce,
      }),
    ],
    createUpgradeEndpoints(config.subscription.upgrade_url),
  )
  const gate = await inSlices(
    gateSteps({
      config,
      findLocalEndpoint: endpoints.find,
      asked,
      upstreams,
      decisions: metrics.tallies.guards,
      clock,
    }),
  )
  let requests = 0
  let isRetired = false
  const releaseIfOver = () => {
    if (!isRetired || requests > 0) return
    holding
      .release()
      .catch(error => logger.warn({ err: error }, 'what was configured before could not be closed'))
  }
  return {
    config,
    gate,
    forward: createForwardRequest(server.timeouts.body_idle, assertions, openStreams),
    endpoints,
    bodyIdleMs: server.timeouts.body_idle,
    logRequest: createAccessLog(logger, server.log),
    certificates,
    jwks: keys.jwks,
    onRefusal(requestId, { code, cause }) {
      if (cause !== undefined) lasting.failureLog(code, cause, () => ({ request_id: requestId }))
    },
    standing: upstreams.standing,
    acquire() {
      requests += 1
    },
    release() {
      requests -= 1
      releaseIfOver()
    },
    retire() {
      isRetired = true
      holding.rest()
      releaseIfOver()
    },
  }
}
