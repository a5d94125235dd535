// Decides whether an identity provider has verified an email.
import { isMailbox } from '../config/formats/mailbox.ts'
import { microsoftHost } from '../config/formats/sign-in.ts'
import type { ProviderConfig } from '../config/sections/schema.ts'

/**
 * Returns the email in lower case. Returns undefined if the provider has not verified it, or if its domain is not
 * accepted.
 * @param claims the claims of an ID token, or of a UserInfo response; Microsoft Entra ID sends `xms_edov`, which is
 *   true if the owner of the domain has verified the email
 */
export function verifiedEmail(
  { email, email_verified, xms_edov }: Readonly<Record<string, unknown>>,
  { issuer, domains }: Pick<ProviderConfig, 'issuer' | 'domains'>,
): string | undefined {
  const isVerified =
    isTrue(email_verified) ||
    (new URL(issuer).hostname === microsoftHost && (isTrue(xms_edov) || xms_edov === 1 || xms_edov === '1'))
  // The email is checked before it is converted to lower case. The conversion turns a Kelvin sign (U+212A) into a `k`,
  // and so creates the address of another mailbox.
  if (!isVerified || typeof email !== 'string' || !isMailbox(email)) return undefined
  const lowerCase = email.toLowerCase()
  const domain = lowerCase.slice(lowerCase.lastIndexOf('@') + 1)
  return domains.length === 0 || domains.includes(domain) ? lowerCase : undefined
}

function isTrue(claim: unknown): boolean {
  return claim === true || claim === 'true'
}
