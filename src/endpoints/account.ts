// The endpoints that show, export and delete the user's own account.
import type { AccountExportStore } from '../accounts/account-export-store.ts'
import type { OwnAccount } from '../accounts/own-account.ts'
import type { Clock } from '../clock.ts'
import { accountExport } from '../openapi/account-export.ts'
import { mergeRefusals, type Operation } from '../openapi/operation.ts'
import * as terms from '../openapi/schema-builders.ts'
import { messages } from '../refusals/catalog.ts'
import { Refusal } from '../refusals/refusal.ts'
import { Type } from '../schema/type.ts'
import { periodEndMs, utcDay } from '../usage/utc-day.ts'
import type { UserStore } from '../users/user-store.ts'
import { authPrefix } from './auth.ts'
import type { AttemptGuess } from './failed-login-limiter.ts'
import { type GuardedEndpoint, guardRefusals } from './local-endpoint.ts'
import type { SignedInEndpoint } from './signed-in.ts'

const { openRecord, record, text } = terms
const path = `${authPrefix}/account`

export const accountOperations = {
  show: {
    method: 'GET',
    path,
    id: 'showOwnAccount',
    summary: 'Shows the current user’s account and daily uses',
    caller: 'user',
    responses: {
      200: {
        description: 'The account.',
        body: record(
          {
            id: terms.id('The user ID.'),
            email: text('The email, without surrounding white space and in lower case.'),
            email_verified: Type.Boolean({
              description: '`true` if the email is verified.',
            }),
            has_password: Type.Boolean({
              description:
                '`false` if the account has no password. The user can set one with a password reset.',
            }),
            plan: terms.plan,
            created_at: terms.instant('The creation time of the account.'),
            daily_usage: terms.count('Uses counted on the current UTC day.'),
            daily_limit: terms.nullable(terms.count('The daily limit of the plan. `null` means no limit.')),
            resets_at: terms.instant('The next reset of the daily uses, at midnight UTC.'),
          },
          { title: 'OwnAccount', description: 'The account of the current user.' },
        ),
      },
    },
    refusals: guardRefusals,
  },
  export: {
    method: 'GET',
    path: `${path}/export`,
    id: 'exportOwnAccount',
    summary: 'Exports all data stored about the current user',
    caller: 'user',
    responses: {
      200: {
        description: 'All stored data of the account, to be saved as a file.',
        body: accountExport,
        headers: { 'content-disposition': 'Always `attachment`.' },
      },
    },
    refusals: guardRefusals,
  },
  delete: {
    method: 'DELETE',
    path,
    id: 'deleteOwnAccount',
    summary: 'Deletes the current user’s account and all its data',
    description: 'Available only if `account.deletion` is on.',
    caller: 'user',
    endsSessions: true,
    body: openRecord({ current_password: text('The current password of the account.') }),
    responses: { 200: { description: 'The account is deleted.', body: terms.message } },
    refusals: mergeRefusals(guardRefusals, {
      401: ['credentials_invalid'],
      404: ['route_unknown'],
      409: ['password_not_set'],
    }),
  },
} as const satisfies Record<string, Operation>

interface Dependencies {
  users: Pick<UserStore, 'findById'>
  exports: AccountExportStore
  ownAccount: Pick<OwnAccount, 'hasPassword' | 'delete'>
  attemptGuess: AttemptGuess
  /** `limits.free_daily`. */
  freeDaily: number
  signedIn: SignedInEndpoint
  clock: Clock
}

/**
 * Each endpoint throws StorageError if the store fails. Each endpoint throws Refusal `user_not_found` if the user was
 * deleted after the guards ran.
 */
export function createOwnAccountEndpoints({
  users,
  exports,
  ownAccount,
  attemptGuess,
  freeDaily,
  signedIn,
  clock,
}: Dependencies): GuardedEndpoint[] {
  return [
    signedIn(accountOperations.show, async ({ user: { id } }) => {
      // The record from the guards comes from a cache and may lack recent uses, so it is read again from the store.
      const user = await users.findById(id)
      if (user === undefined) throw new Refusal('user_not_found')
      const { email, plan, created_at, last_usage_date, daily_usage } = user
      const now = clock.now()
      return {
        status: 200,
        body: {
          id,
          email,
          email_verified: user.email_verified_at !== null,
          has_password: await ownAccount.hasPassword(id),
          plan,
          created_at,
          daily_usage: last_usage_date === utcDay(now) ? daily_usage : 0,
          daily_limit: plan === 'free' ? freeDaily : null,
          resets_at: new Date(periodEndMs('day', now)),
        },
      }
    }),
    signedIn(accountOperations.export, async ({ user: { id } }) => {
      const body = await exports.read(id, new Date(clock.now()))
      if (body === undefined) throw new Refusal('user_not_found')
      return { status: 200, headers: { 'content-disposition': 'attachment' }, body }
    }),
    signedIn(accountOperations.delete, async ({ user, body, client }) => {
      await attemptGuess(client, user.email, () => ownAccount.delete(user, body.string('current_password')))
      return { status: 200, body: { message: messages.accountDeleted } }
    }),
  ]
}
