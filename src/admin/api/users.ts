// Operators see, create, change and delete users, inactive ones too (CONTRACT §7, §13).

import type { SessionStore } from '../../accounts/session-store.ts'
import type { Clock } from '../../clock.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { UserStore } from '../../users/user-store.ts'
import type { UserDetailsStore } from '../user-details-store.ts'
import type { AdminEndpoint } from './admin-endpoint.ts'
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

export interface UserAdministrationDependencies {
  users: Pick<UserStore, 'create' | 'update' | 'delete' | 'resetUsage' | 'setPassword'>
  userDetails: UserDetailsStore
  sessions: Pick<SessionStore, 'list'>
  /** The PHC string of a password. @throws Refusal `service_unavailable` while too many are hashed */
  hashPassword(password: string): Promise<string>
  clock: Clock
  /** Resolves when the change is visible in this process. */
  changesVisible(): Promise<void>
}

/** Tens of thousands of sessions would make megabytes of one user; `…/sessions` has them all. */
const newestSessions = { newest: 'login', limit: 100 } as const

/** No hash of any password: nobody can sign in by it. */
const noPassword = '!'

export function createUserAdministration({
  users,
  userDetails,
  sessions,
  hashPassword,
  clock,
  changesVisible,
}: UserAdministrationDependencies): AdminEndpoint[] {
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
          // In the order of the list that has all.
          sessions: (await sessions.list(id, new Date(clock.now()), newestSessions)).reverse(),
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
            // The one that it has already was not set.
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
  ]
}
