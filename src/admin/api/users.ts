// Lets operators create, show, change, export and delete users. Operators can also end sessions, revoke keys, and reset
// uses and passwords.
import { issuerOfName, withProviderName } from '../../accounts/external/provider-names.ts'
import { noHash } from '../../accounts/hashes/foreign-hash.ts'
import { isSessionId } from '../../accounts/session-list.ts'
import { isKeyId } from '../../identity/api-keys/api-key-store.ts'
import { messages } from '../../refusals/catalog.ts'
import { Refusal } from '../../refusals/refusal.ts'
import { readQuotaUsage, resetUses } from '../../usage/quota-usage.ts'
import type { AdminDependencies, AdminEndpoint } from './admin-endpoint.ts'
import { invalidField } from './input.ts'
import {
  auditedFields,
  notFound,
  orNotFound,
  parseUserId,
  previousFields,
  readEmail,
  readPassword,
  readPasswordHash,
  readPatch,
  readQuota,
} from './user-input.ts'
import { userOperations } from './users.openapi.ts'

/** Limits the response, because one user may have tens of thousands of sessions. */
const newestSessions = { newest: 'login', limit: 100 } as const

export function createUserAdministration(dependencies: AdminDependencies): AdminEndpoint[] {
  const { users, userDetails, sessions, apiTokens, userKeys, webhooks, exports, codeIssues } = dependencies
  const {
    identities,
    providers,
    quotaRecords,
    plans,
    hashPassword,
    resetTtlMs,
    wakeMails,
    changesVisible,
    clock,
  } = dependencies
  const now = () => new Date(clock.now())
  return [
    {
      operation: userOperations.create,
      async handle({ body, audited }) {
        const { email: _, ...start } = readPatch(body, plans())
        const email = readEmail(body.string('email'))
        const given = body.value('password')
        const foreign = body.value('password_hash')
        if (given !== undefined && foreign !== undefined) throw invalidField('password_hash')
        const hash =
          foreign !== undefined
            ? readPasswordHash(foreign)
            : given !== undefined
              ? await hashPassword(readPassword(given))
              : noHash
        const changes = auditedFields({
          email,
          ...start,
          ...(given === undefined ? {} : { password: given }),
          ...(foreign === undefined ? {} : { password_hash: foreign }),
        })
        const created = await users.create(
          email,
          hash,
          { plan: plans().first.name, ...start },
          (tx, { id }) => audited({ userId: id, changes })(tx),
        )
        if (created.outcome === 'email_in_use') throw new Refusal('email_taken')
        return created.user
      },
    },
    {
      operation: userOperations.show,
      async handle({ params, may }) {
        const id = parseUserId(params.id)
        const { user, subscription, apiToken, webhook } = orNotFound(await userDetails.find(id))
        const usage = await readQuotaUsage(quotaRecords, id, plans().find(user.plan))
        if (may === 'billing') return { ...user, subscription, usage }
        return {
          ...user,
          subscription,
          usage,
          // `list` returns the newest session first. The response starts with the oldest, like the list of all
          // sessions.
          sessions: (await sessions.list(id, now(), newestSessions)).reverse(),
          api_token: apiToken,
          api_keys: await userKeys.listNewest(id),
          identities: (await identities.list(id)).map(identity => withProviderName(providers(), identity)),
          webhook: webhook && may === 'read' ? { ...webhook, url: new URL(webhook.url).origin } : webhook,
        }
      },
    },
    {
      operation: userOperations.change,
      async handle({ params, body, audited }) {
        const userId = parseUserId(params.id)
        const patch = readPatch(body, plans())
        const user = orNotFound(
          await users.update(userId, patch, (tx, before) => {
            const { email, ...others } = patch
            // If the given email equals the current email, the audit log does not list a change of the email.
            const isAnother = email !== undefined && email !== before?.email
            const changes = auditedFields({ ...others, ...(isAnother ? { email } : {}) })
            return audited({ userId, changes, previous: previousFields(others, before) })(tx)
          }),
        )
        if (user === 'email_taken') throw new Refusal('email_taken')
        await changesVisible()
        return user
      },
    },
    {
      operation: userOperations.remove,
      async handle({ params, audited }) {
        const userId = parseUserId(params.id)
        if (!(await users.delete(userId, { inTransaction: audited({ userId, changes: {} }) })))
          throw notFound()
        await changesVisible()
        return undefined
      },
    },
    {
      operation: userOperations.resetUsage,
      async handle({ params, body, audited }) {
        const userId = parseUserId(params.id)
        const quota = readQuota(body, plans())
        const step = audited({ userId, changes: quota === undefined ? {} : { quota } })
        const user = orNotFound(await resetUses({ users, quotaRecords }, userId, quota, step))
        await changesVisible()
        return user
      },
    },
    {
      operation: userOperations.setPassword,
      async handle({ params, body, audited }) {
        const userId = parseUserId(params.id)
        const hash = await hashPassword(readPassword(body.value('password')))
        const step = audited({ userId, changes: auditedFields({ password: true }) })
        if (!(await users.setPassword(userId, hash, step))) throw notFound()
        await changesVisible()
        return undefined
      },
    },
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
        const session = isSessionId(params.session) ? params.session : nilUuid
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
      operation: userOperations.revokeKey,
      async handle({ params, audited }) {
        const userId = parseUserId(params.id)
        const { key: given = '' } = params
        const key = isKeyId(given) ? given : nilUuid
        orNotFound(await userKeys.revoke(userId, key, now(), audited({ userId, changes: { key } })))
        await changesVisible()
        return undefined
      },
    },
    {
      operation: userOperations.revokeKeys,
      async handle({ params, audited }) {
        const userId = parseUserId(params.id)
        orNotFound(await userKeys.revokeAll(userId, now(), audited({ userId, changes: {} })))
        await changesVisible()
        return undefined
      },
    },
    {
      operation: userOperations.removeIdentity,
      async handle({ params, audited }) {
        const userId = parseUserId(params.id)
        const { provider = '' } = params
        const issuer = issuerOfName(providers(), provider) ?? provider
        const step = audited({ userId, changes: { provider: issuer } })
        const outcome = await identities.remove(userId, issuer, step)
        if (outcome === 'user_gone') throw notFound()
        if (outcome === 'unknown') throw new Refusal('provider_unknown')
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
    {
      operation: userOperations.sendReset,
      async handle({ params, audited }) {
        const userId = parseUserId(params.id)
        const ttlMs = resetTtlMs()
        if (ttlMs === undefined) throw new Refusal('mail_not_configured')
        const user = orNotFound(await users.findById(userId))
        // The code is issued for the email that was read above. If the user is inactive, or has another email by now,
        // no mail is sent.
        const step = audited({ userId, changes: {} })
        if (user.is_active === 0 || !(await codeIssues.issueReset(user.email, ttlMs, now(), step)))
          throw new Refusal('user_inactive')
        wakeMails()
        return { message: messages.mailSent }
      },
    },
    {
      operation: userOperations.export,
      auditsRefusals: true,
      headers: { 'content-disposition': 'attachment' },
      async handle({ params, written }) {
        const userId = parseUserId(params.id)
        const exported = orNotFound(await exports.read(userId, now()))
        await written({ userId, changes: {} })
        return exported
      },
    },
  ]
}

/**
 * The nil UUID (RFC 9562 §5.9). No session and no key has this id. It replaces a text that cannot be the id of a
 * session or key.
 */
const nilUuid = '00000000-0000-0000-0000-000000000000'
