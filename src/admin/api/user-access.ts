// What a user has access by, for operators: sessions, the API key, the webhook (CONTRACT §13).

import type { SessionStore } from '../../accounts/session-store.ts'
import type { Clock } from '../../clock.ts'
import type { ApiTokenStore } from '../../identity/api-tokens/api-token-store.ts'
import { messages } from '../../refusals/catalog.ts'
import type { UserStore } from '../../users/user-store.ts'
import type { WebhookStore } from '../../webhooks/webhook-store.ts'
import type { AdminEndpoint } from './admin-endpoint.ts'
import { notFound, orNotFound, parseUserId } from './user-input.ts'
import { userOperations } from './users.openapi.ts'

export interface UserAccessDependencies {
  users: Pick<UserStore, 'findById'>
  sessions: Pick<SessionStore, 'list' | 'end' | 'revokeAll'>
  apiTokens: Pick<ApiTokenStore, 'revoke'>
  webhooks: Pick<WebhookStore, 'remove'>
  clock: Clock
  /** Resolves when the change is visible in this process. */
  changesVisible(): Promise<void>
}

export function createUserAccess(dependencies: UserAccessDependencies): AdminEndpoint[] {
  const { users, sessions, apiTokens, webhooks, clock, changesVisible } = dependencies
  const now = () => new Date(clock.now())
  return [
    {
      operation: userOperations.sessions,
      async handle({ params }) {
        const { id } = orNotFound(await users.findById(parseUserId(params.id)))
        return { sessions: await sessions.list(id, now()) }
      },
    },
    {
      operation: userOperations.endSessions,
      async handle({ params, audited }) {
        const userId = parseUserId(params.id)
        if (!(await sessions.revokeAll(userId, audited({ userId, changes: {} })))) throw notFound()
        await changesVisible()
        return { message: messages.sessionsRevoked }
      },
    },
    {
      operation: userOperations.endSession,
      async handle({ params, audited }) {
        const userId = parseUserId(params.id)
        const session = isUuid(params.session) ? params.session : noSession
        if (!(await sessions.end(userId, session, audited({ userId, changes: { session } }))))
          throw notFound()
        await changesVisible()
        return undefined
      },
    },
    {
      operation: userOperations.revokeApiToken,
      async handle({ params, audited }) {
        const userId = parseUserId(params.id)
        if (!(await apiTokens.revoke(userId, audited({ userId, changes: {} })))) throw notFound()
        await changesVisible()
        return undefined
      },
    },
    {
      operation: userOperations.removeWebhook,
      async handle({ params, audited }) {
        const userId = parseUserId(params.id)
        if (!(await webhooks.remove(userId, now(), audited({ userId, changes: {} })))) throw notFound()
        return undefined
      },
    },
  ]
}

/** The nil UUID (RFC 9562 §5.9). */
const noSession = '00000000-0000-0000-0000-000000000000'

function isUuid(text: string | undefined): text is string {
  return text !== undefined && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)
}
