// Lets operators create, show, change and delete users, end their access, and reset their uses and passwords.
import { isSessionId } from '../../accounts/session-list.ts'
import { messages } from '../../refusals/catalog.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { AdminDependencies, AdminEndpoint } from './admin-endpoint.ts'
import {
  auditedFields,
  notFound,
  orNotFound,
  parseUserId,
  previousFields,
  readEmail,
  readPassword,
  readPatch,
} from './user-input.ts'
import { userOperations } from './users.openapi.ts'

/** Limits the response, because one user may have tens of thousands of sessions. */
const newestSessions = { newest: 'login', limit: 100 } as const

/** This text is not the hash of any password, so no password matches it. */
const noPassword = '!'

export function createUserAdministration(dependencies: AdminDependencies): AdminEndpoint[] {
  const { users, userDetails, sessions, apiTokens, webhooks, exports, codeIssues } = dependencies
  const { hashPassword, resetTtlMs, wakeMails, changesVisible, clock } = dependencies
  const now = () => new Date(clock.now())
  return [
    {
      operation: userOperations.create,
      async handle({ body, audited }) {
        const { email: _, ...start } = readPatch(body)
        const email = readEmail(body.string('email'))
        const given = body.value('password')
        const hash = given === undefined ? noPassword : await hashPassword(readPassword(given))
        const changes = auditedFields({
          email,
          ...start,
          ...(given === undefined ? {} : { password: given }),
        })
        const created = await users.create(email, hash, start, (tx, { id }) =>
          audited({ userId: id, changes })(tx),
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
        if (may === 'billing') return { ...user, subscription }
        return {
          ...user,
          subscription,
          // The sessions are shown oldest first, as in the list of all sessions.
          sessions: (await sessions.list(id, now(), newestSessions)).reverse(),
          api_token: apiToken,
          webhook: webhook && may === 'read' ? { ...webhook, url: new URL(webhook.url).origin } : webhook,
        }
      },
    },
    {
      operation: userOperations.change,
      async handle({ params, body, audited }) {
        const userId = parseUserId(params.id)
        const patch = readPatch(body)
        const user = orNotFound(
          await users.update(userId, patch, (tx, before) => {
            const { email, ...others } = patch
            // If the given email equals the current email, the audit does not list it as a change.
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
      async handle({ params, audited }) {
        const userId = parseUserId(params.id)
        const user = orNotFound(await users.resetUsage(userId, audited({ userId, changes: {} })))
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
        const session = isSessionId(params.session) ? params.session : noSession
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
    {
      operation: userOperations.sendReset,
      async handle({ params, audited }) {
        const userId = parseUserId(params.id)
        const ttlMs = resetTtlMs()
        if (ttlMs === undefined) throw new Refusal('mail_not_configured')
        const user = orNotFound(await users.findById(userId))
        // The code is issued for the email that was read. If the email has changed since, or the user is inactive,
        // nothing is sent.
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

/** The nil UUID (RFC 9562 §5.9), which is the id of no session. */
const noSession = '00000000-0000-0000-0000-000000000000'
