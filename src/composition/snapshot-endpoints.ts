// Sets up the endpoints of a user's account: sessions, password, password reset, email, export, and deletion.
import { type AccountCodes, createAccountCodes } from '../accounts/codes/account-codes.ts'
import { createOwnAccount } from '../accounts/own-account.ts'
import type { Passwords } from '../accounts/password.ts'
import type { ValidateNewPassword } from '../accounts/password-rules.ts'
import type { Sessions } from '../accounts/sessions.ts'
import type { Config } from '../config/sections/schema.ts'
import { createOwnAccountEndpoints } from '../endpoints/account.ts'
import { createEmailEndpoints } from '../endpoints/email.ts'
import type { AttemptGuess } from '../endpoints/failed-login-limiter.ts'
import type { LocalEndpoint } from '../endpoints/local-endpoint.ts'
import { createSessionEndpoints } from '../endpoints/own-sessions.ts'
import { createPasswordEndpoints } from '../endpoints/password.ts'
import { createResetEndpoints } from '../endpoints/reset.ts'
import type { RequireLiveCredential, SignedInEndpoint } from '../endpoints/signed-in.ts'
import { createRedeemSubmitted } from '../endpoints/submitted-code.ts'
import type { CreateRateLimiter } from '../storage/rate-limiter.ts'
import type { ServingProcess } from './process.ts'

interface Dependencies {
  serving: ServingProcess
  passwords: Passwords
  validateNewPassword: ValidateNewPassword
  sessions: Sessions
  attemptGuess: AttemptGuess
  createRateLimiter: CreateRateLimiter
  requireLiveCredential: RequireLiveCredential
  signedIn: SignedInEndpoint
  /** Resolves when database changes are visible in every process. */
  changesVisible(): Promise<void>
}

interface AccountEndpoints {
  readonly endpoints: LocalEndpoint[]
  /** Sends the verification mail of a new account, if `mail.verify_on_register` is set. Never rejects. */
  onRegistered(user: { id: number; email: string }, client: string): Promise<void>
}

export function createAccountEndpoints(
  { mail, limits }: Pick<Config, 'mail' | 'limits'>,
  dependencies: Dependencies,
): AccountEndpoints {
  const { serving, passwords, validateNewPassword, sessions, attemptGuess } = dependencies
  const { requireLiveCredential, signedIn, changesVisible } = dependencies
  const { stores, failureLog, clock } = serving
  const { users } = stores
  const ownAccount = createOwnAccount({ users, passwords, sessions, changesVisible })
  const redeemSubmitted = createRedeemSubmitted(attemptGuess)
  const codes = mail && openAccountCodes(mail, dependencies)
  const verification = mail?.verify_on_register === true ? codes?.verification : undefined
  return {
    endpoints: [
      ...createSessionEndpoints({ sessions: stores.sessions, signedIn, clock }),
      ...createPasswordEndpoints({ ownAccount, validateNewPassword, attemptGuess, signedIn }),
      ...createOwnAccountEndpoints({
        users,
        exports: stores.exports,
        ownAccount,
        attemptGuess,
        freeDaily: limits.free_daily,
        signedIn,
        clock,
      }),
      ...createResetEndpoints({ passwordReset: codes?.passwordReset, redeemSubmitted }),
      ...createEmailEndpoints({
        codes,
        ownAccount,
        redeemSubmitted,
        attemptGuess,
        requireLiveCredential,
        signedIn,
      }),
    ],
    async onRegistered(user, client) {
      await verification
        ?.request(user, client)
        .catch(error => failureLog('verification mail for a new account was not stored', error))
    },
  }
}

function openAccountCodes(
  { code_ttl: ttlMs, rate_limits: rateLimits, notices }: NonNullable<Config['mail']>,
  { serving, passwords, validateNewPassword, createRateLimiter, changesVisible }: Dependencies,
): AccountCodes {
  const { stores, redeemCode, clock, mailQueue: mails } = serving
  return createAccountCodes({
    issues: stores.codeIssues,
    redemptions: stores.codeRedemptions,
    redeemCode,
    passwords,
    validateNewPassword,
    limiters: {
      perEmail: createRateLimiter('mail_email', rateLimits.per_email),
      perAddress: createRateLimiter('mail_address', rateLimits.per_address),
    },
    mails,
    clock,
    ttlMs,
    notices,
    changesVisible,
  })
}
