// Reads the code or the token from the body of a request, and limits how many codes a client can try.
import type { CodeOwner } from '../accounts/codes/code-redemption-store.ts'
import type { SubmittedCode } from '../accounts/codes/redeem-code.ts'
import { isStorableEmail } from '../accounts/email.ts'
import { roundUpDuration } from '../async/round-up-duration.ts'
import type { JsonObject } from '../http/json-body.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { AttemptGuess } from './failed-login-limiter.ts'

/**
 * Returns the token without white space at its ends. Returns an empty text if there is no token. If there is a token,
 * the code is ignored.
 */
export function tokenOf(body: JsonObject): string {
  return body.string('token').trim()
}

/** The account that must own the code, and the normalized email for which wrong codes are counted. */
interface CodeClaim {
  readonly owner: CodeOwner
  readonly email: string
}

/**
 * Calls `redeem` with the token or code of the body. A wrong code counts as a failed login. A wrong token does not
 * count, because a token of 256 bits cannot be guessed.
 * @throws Refusal `rate_limited`; errors of `redeem`
 */
export type RedeemSubmitted = <T>(
  request: { readonly body: JsonObject; readonly client: string },
  claim: CodeClaim,
  redeem: (submitted: SubmittedCode) => Promise<T>,
) => Promise<T>

export function createRedeemSubmitted(attemptGuess: AttemptGuess): RedeemSubmitted {
  return async ({ body, client }, { owner, email }, redeem) => {
    const token = tokenOf(body)
    if (token !== '') return redeem({ token })
    const tryCode = async () => {
      // No account can have this text as its email, so the code is invalid. A query is not sent, because Postgres would
      // reject some of these texts with an error.
      if (!isStorableEmail(email)) throw new Refusal('code_invalid')
      return redeem({ code: body.string('code').trim(), owner })
    }
    // The duration is rounded up. Otherwise it would show whether a code exists for the email, and therefore whether
    // the email has an account.
    return attemptGuess(client, email, () => roundUpDuration(tryCode))
  }
}
