// Assembles what users do by mail: forgotten passwords, verification, change of email; and the case without mail.
import { type AccountCodes, createAccountCodes } from '../accounts/codes/account-codes.ts'
import { createCodeDerivation } from '../accounts/codes/code-derivation.ts'
import { createCodeIssueStore } from '../accounts/codes/code-issue-store.ts'
import { createCodeKeys } from '../accounts/codes/code-key-store.ts'
import { createCodeRedemptionStore } from '../accounts/codes/code-redemption-store.ts'
import { createRedeemCode } from '../accounts/codes/redeem-code.ts'
import { createCurrentPassword } from '../accounts/current-password.ts'
import type { Passwords } from '../accounts/password.ts'
import type { ValidateNewPassword } from '../accounts/password-rules.ts'
import type { Config } from '../config/sections/schema.ts'
import { createEmailEndpoints } from '../endpoints/email.ts'
import type { LocalEndpoint } from '../endpoints/local-endpoint.ts'
import { createResetEndpoints } from '../endpoints/reset.ts'
import type { RequireSignedIn, SignedInEndpoint } from '../endpoints/signed-in.ts'
import { createRedeemSubmitted } from '../endpoints/submitted-code.ts'
import { revokeApiToken } from '../identity/api-tokens/api-token-store.ts'
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
  readonly endpoints: LocalEndpoint[]
  /** Sends the verification of a new account where `mail.verify_on_register` is set. Never rejects. */
  onRegistered(user: { id: number; email: string }, client: string): Promise<void>
}

export function createMailedEndpoints(
  { mail }: Pick<Config, 'mail'>,
  dependencies: Dependencies,
): MailedEndpoints {
  const { services, passwords, limiters, requireSignedIn, signedIn } = dependencies
  const { failedLogins, failureLog, users } = services
  const redeemSubmitted = createRedeemSubmitted({ limiters, failedLogins })
  const codes = mail && openAccountCodes(mail, dependencies)
  const verification = mail?.verify_on_register === true ? codes?.verification : undefined
  return {
    endpoints: [
      ...createResetEndpoints({ passwordReset: codes?.passwordReset, redeemSubmitted }),
      ...createEmailEndpoints({
        codes,
        currentPassword: createCurrentPassword({ users, passwords }),
        redeemSubmitted,
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

function openAccountCodes(
  { code_ttl: ttlMs, rate_limits: rateLimits, notices }: NonNullable<Config['mail']>,
  { services, passwords, validateNewPassword, createRateLimiter, changesVisible }: Dependencies,
): AccountCodes {
  const { storage, sealer, clock, mailQueue: mails, changes } = services
  const { database } = storage
  const redemptions = createCodeRedemptionStore({
    database,
    async forgetIntegrations(tx, userId, now) {
      await revokeApiToken(tx, userId)
      await removeWebhook(tx, userId, now)
    },
    recordChanges: changes.record,
  })
  const derivation = createCodeDerivation(createCodeKeys(database, sealer))
  return createAccountCodes({
    issues: createCodeIssueStore(database, mails),
    redemptions,
    redeemCode: createRedeemCode({ codes: redemptions, derivation, clock }),
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
