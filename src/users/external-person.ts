// Defines the data that an identity provider confirms about a person.

export interface ExternalPerson {
  readonly issuer: string
  readonly sub: string
  /** The normalized email, in lower case. Undefined if the provider has not verified it. */
  readonly email: string | undefined
}

/** A verified ID token. A client can open only one session with it. */
export interface UsableIdToken {
  /**
   * The SHA-256 of `header.payload` in hex. The signature is left out, because anyone can derive a second valid
   * signature from an ES256 signature.
   */
  readonly hash: string
  /** From this time on, no replica accepts the token. */
  readonly tooOldAt: Date
}
