// The code or token of a mail in a request's body, and the limits of guesses at codes (CONTRACT §12, "Mail").
import type { PresentedCode } from '../accounts/code-use.ts'
import { isStorableEmail } from '../accounts/email.ts'
import { inWholeSteps } from '../async/whole-steps.ts'
import type { JsonObject } from '../http/json-body.ts'
import type { CodeOwner } from '../mail/codes/code-store.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { RateLimiters } from '../storage/rate-limiter.ts'
import { type FailedLoginLimiter, guessLimits } from './failed-login-limiter.ts'

/** Stripped; empty if there is none. A token that is not empty is what counts. */
export function tokenOf(body: JsonObject): string {
  return body.string('token').trim()
}

/** Whose code it is said to be, and the normalised email that wrong ones are counted by. */
interface CodeClaim {
  readonly owner: CodeOwner
  readonly email: string
}

/**
 * Runs `use` with what was presented. Wrong codes count as failed logins do; of a token, 256 bits are not guessed.
 * @throws Refusal `rate_limited`, or whatever `use` throws
 */
export type UsePresented = <T>(
  request: { readonly body: JsonObject; readonly client: string },
  claim: CodeClaim,
  use: (presented: PresentedCode) => Promise<T>,
) => Promise<T>

interface Dependencies {
  limiters: Pick<RateLimiters, 'login' | 'login_address'>
  failedLogins: FailedLoginLimiter
}

export function createUsePresented({ limiters, failedLogins }: Dependencies): UsePresented {
  return async ({ body, client }, { owner, email }, use) => {
    const token = tokenOf(body)
    if (token !== '') return use({ token })
    const tryCode = async () => {
      // No account has another one, and not every text can be asked for in the database.
      if (!isStorableEmail(email)) throw new Refusal('code_invalid')
      return use({ code: body.string('code').trim(), owner })
    }
    // The time of counting a try would tell for which emails there is a code, and so an account.
    return failedLogins.attempt(guessLimits(limiters, client, email), () => inWholeSteps(tryCode))
  }
}
