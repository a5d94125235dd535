// Why a delivery was not answered, in words for the delivery log.

/**
 * `timeout`: not all of it was over in `webhooks.timeout` · `unresolved`: no name server has an address · `address`:
 * the host is, or is at, what CONTRACT §5 refuses · `connection`: refused, unreachable, broken off · `tls`: no
 * handshake, or a certificate that is not its own or not trusted · `answer`: not HTTP, or a head over 16 KiB ·
 * `aborted`: by the caller's signal.
 */
export type FailureReason =
  | 'secret'
  | 'timeout'
  | 'unresolved'
  | 'address'
  | 'connection'
  | 'tls'
  | 'answer'
  | 'aborted'

export class SendFailure extends Error {
  readonly reason: FailureReason

  constructor(reason: FailureReason, message: string) {
    super(message)
    this.reason = reason
  }
}

/** One short line, which a table and a terminal can hold: certificates and answers put their own words into errors. */
export function describeError(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown }
  const words = [code, message].filter(word => typeof word === 'string' && word !== '')
  return words
    .join(': ')
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
    .slice(0, 200)
    .toWellFormed()
}
