// Defines the statement of an identity provider about a person.

export interface ExternalPerson {
  readonly issuer: string
  readonly sub: string
  /** The email in lower case, which is its normalized form. Undefined if the provider has not verified it. */
  readonly email: string | undefined
}

/** An ID token that was verified. It gives only one session. */
export interface UsableIdToken {
  /** The SHA-256 of `header.payload` in hex. The signature is left out, because ES256 signatures are malleable. */
  readonly hash: string
  /** From this time on, no replica accepts the token. */
  readonly tooOldAt: Date
}
