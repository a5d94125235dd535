// The error of everything that can go wrong with an identity provider.

/** The values of `error` with which the browser returns to the page. */
export type FailureReason =
  /** The user declined at the provider, or the provider does not allow the user. */
  | 'access_denied'
  /** The provider answered with an error, or the callback is not its answer to this attempt. */
  | 'provider_error'
  /** The ID token, or the UserInfo response to it, is not acceptable. */
  | 'id_token_invalid'
  /** The provider does not respond, or its documents cannot be used. */
  | 'provider_unavailable'

/** The message is for the log. It contains no code, token, email or secret. */
export class ProviderFailure extends Error {
  readonly reason: FailureReason
  /** One line for each problem. */
  readonly lines: readonly string[]

  /** @param where the URL or the thing that has the problems */
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
