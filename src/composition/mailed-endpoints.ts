// Assembles what users do by mail: forgotten passwords, verification, change of email; and where none can be sent.
import { createCodeChangeStore } from '../accounts/code-change-store.ts'
import { createCodeRequestStore } from '../accounts/code-request-store.ts'
import { createCodeUse } from '../accounts/code-use.ts'
import { createCurrentPassword } from '../accounts/current-password.ts'
import { createEmailChange } from '../accounts/email-change.ts'
import { createEmailVerification } from '../accounts/email-verification.ts'
import type { Passwords } from '../accounts/password.ts'
import { createPasswordReset } from '../accounts/password-reset.ts'
import type { ValidateNewPassword } from '../accounts/password-rules.ts'
import type { Config } from '../config/sections/schema.ts'
import { createEmailEndpoints } from '../endpoints/email.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import { createUsePresented } from '../endpoints/presented-code.ts'
import { createResetEndpoints } from '../endpoints/reset.ts'
import type { RequireSignedIn, SignedInEndpoint } from '../endpoints/signed-in.ts'
import { revokeApiToken } from '../identity/api-tokens/api-token-store.ts'
import { createCodeDerivation } from '../mail/codes/code-derivation.ts'
import { createCodeKeys } from '../mail/codes/code-key-store.ts'
import { createCodeStore } from '../mail/codes/code-store.ts'
import { createMailLimits } from '../mail/mail-limits.ts'
import type { CreateRateLimiter, RateLimiters } from '../storage/rate-limiter.ts'
import { removeWebhook } from '../webhooks/webhook-store.ts'
import type { ProcessServices } from './process-services.ts'

interface Dependencies {
  services: ProcessServices
  passwords: Passwords
  validateNewPassword: ValidateNewPassword
  limiters: RateLimiters
  createRateLimiter: CreateRateLimiter
  requireSignedIn: RequireSignedIn
  signedIn: SignedInEndpoint
  /** Resolves when changes are visible in every process. */
  changesVisible(): Promise<void>
}

interface MailedEndpoints {
  readonly endpoints: Endpoint[]
  /** Sends the verification of a new account where `mail.verify_on_register` is set. Never rejects. */
  onRegistered(user: { id: number; email: string }, client: string): Promise<void>
}

export function createMailedEndpoints(
  { mail }: Pick<Config, 'mail'>,
  dependencies: Dependencies,
): MailedEndpoints {
  const { services, passwords, limiters, requireSignedIn, signedIn } = dependencies
  const { failedLogins, failureLog, users } = services
  const usePresented = createUsePresented({ limiters, failedLogins })
  const mailed = mail && openMailed(mail, dependencies)
  const verification = mail?.verify_on_register === true ? mailed?.verification : undefined
  return {
    endpoints: [
      ...createResetEndpoints({ passwordReset: mailed?.passwordReset, usePresented }),
      ...createEmailEndpoints({
        mailed,
        currentPassword: createCurrentPassword({ users, passwords }),
        usePresented,
        limiters,
        failedLogins,
        requireSignedIn,
        signedIn,
      }),
    ],
    async onRegistered(user, client) {
      await verification
        ?.request(user, client)
        .catch(error => failureLog('the mail that verifies a new account’s email was not stored', error))
    },
  }
}

function openMailed(
  { code_ttl: ttlMs, rate_limits: rateLimits, notices }: NonNullable<Config['mail']>,
  { services, passwords, validateNewPassword, createRateLimiter, changesVisible }: Dependencies,
) {
  const { storage, sealer, clock, mailQueue: mails, changes } = services
  const { database } = storage
  const codes = createCodeStore(database)
  const derivation = createCodeDerivation(createCodeKeys(database, sealer))
  const shared = {
    requests: createCodeRequestStore({ database, codes, mails }),
    changes: createCodeChangeStore({
      database,
      codes,
      async forgetIntegrations(tx, userId, now) {
        await revokeApiToken(tx, userId)
        await removeWebhook(tx, userId, now)
      },
      recordChanges: changes.record,
    }),
    codeUse: createCodeUse({ codes, derivation, clock }),
    limits: createMailLimits({
      perEmail: createRateLimiter('mail_email', rateLimits.per_email),
      perAddress: createRateLimiter('mail_address', rateLimits.per_address),
    }),
    mails,
    clock,
    changesVisible,
  }
  return {
    passwordReset: createPasswordReset({ ...shared, passwords, validateNewPassword, ttlMs: ttlMs.reset }),
    verification: createEmailVerification({ ...shared, ttlMs: ttlMs.verify }),
    change: createEmailChange({ ...shared, notices, ttlMs: ttlMs.email }),
  }
}
