// Assembles what users do with their account themselves, without mail.
import { createAccountDeletion } from '../accounts/account-deletion.ts'
import { createAccountExportStore } from '../accounts/account-export-store.ts'
import { createCurrentPassword } from '../accounts/current-password.ts'
import type { Passwords } from '../accounts/password.ts'
import { createPasswordChange } from '../accounts/password-change.ts'
import type { ValidateNewPassword } from '../accounts/password-rules.ts'
import type { Sessions } from '../accounts/sessions.ts'
import type { Config } from '../config/sections/schema.ts'
import { createOwnAccountEndpoints } from '../endpoints/account.ts'
import type { LocalEndpoint } from '../endpoints/local-endpoint.ts'
import { createSessionEndpoints } from '../endpoints/own-sessions.ts'
import { createPasswordEndpoints } from '../endpoints/password.ts'
import type { SignedInEndpoint } from '../endpoints/signed-in.ts'
import type { RateLimiters } from '../storage/rate-limiter.ts'
import type { ProcessServices } from './process-services.ts'

interface Dependencies {
  services: ProcessServices
  passwords: Passwords
  validateNewPassword: ValidateNewPassword
  sessions: Sessions
  limiters: RateLimiters
  signedIn: SignedInEndpoint
  /** Resolves when changes are visible in every process. */
  changesVisible(): Promise<void>
}

export function createAccountEndpoints(
  { limits }: Config,
  { services, passwords, validateNewPassword, sessions, limiters, signedIn, changesVisible }: Dependencies,
): LocalEndpoint[] {
  const { users, sessionStore, failedLogins, clock } = services
  const currentPassword = createCurrentPassword({ users, passwords })
  return [
    ...createSessionEndpoints({ sessions: sessionStore, signedIn, clock }),
    ...createPasswordEndpoints({
      passwordChange: createPasswordChange({ users, passwords, currentPassword, sessions }),
      validateNewPassword,
      limiters,
      failedLogins,
      signedIn,
    }),
    ...createOwnAccountEndpoints({
      users,
      exports: createAccountExportStore(services.storage.database),
      accountDeletion: createAccountDeletion({ users, currentPassword, changesVisible }),
      limiters,
      failedLogins,
      freeDaily: limits.free_daily,
      signedIn,
      clock,
    }),
  ]
}
