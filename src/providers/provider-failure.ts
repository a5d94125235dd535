// Defines the error for all failures of an identity provider, or of a sign-in with it.

/**
 * The reason of a failure. After a failed sign-in in a browser, the page receives this value in the parameter `error`.
 */
export type FailureReason =
  /** The user declined at the provider, or the provider does not let the user sign in. */
  | 'access_denied'
  /** The provider responded with an error, or the callback does not belong to this sign-in. */
  | 'provider_error'
  /** The ID token or the UserInfo response is invalid. */
  | 'id_token_invalid'
  /** The provider does not respond, or its documents cannot be used. */
  | 'provider_unavailable'

/** The message is for the log. It contains no code, token, email or secret. */
export class ProviderFailure extends Error {
  readonly reason: FailureReason
  /** One line for each problem. */
  readonly lines: readonly string[]

  /** @param where the source of the problems: a method and URL, a URL, `callback` or `ID token` */
  constructor(reason: FailureReason, where: string, problems: readonly string[]) {
    super(`${where}: ${problems.join('; ')}`)
    this.reason = reason
    this.lines = problems.map(problem => `${where}: ${problem}`)
  }
}

const maxQuotedLength = 200

/** Quotes a text of a provider for a message. Shortens it, and replaces everything except printable ASCII. */
export function quote(text: unknown): string {
  const printable = String(JSON.stringify(text)).replaceAll(/[^\x20-\x7e]/g, '?')
  return printable.length > maxQuotedLength ? `${printable.slice(0, maxQuotedLength)}…` : printable
}

/** Returns the URL without its query, which may contain secrets. */
export function describeUrl(url: string): string {
  const { origin, pathname } = new URL(url)
  return (origin + pathname).slice(0, maxQuotedLength)
}
