// Why a delivery got no response, in words for the delivery log.

/**
 * `secret`: the stored secret cannot be unsealed · `timeout`: not finished within `webhooks.timeout` · `unresolved`:
 * no name server returned an address · `address`: the host is, or resolves to, one that CONTRACT §5 refuses ·
 * `connection`: refused, unreachable or broken off · `tls`: failed handshake, or a certificate for another host or of
 * an untrusted CA · `answer`: not HTTP, or a response head over 16 KiB · `aborted`: by the caller's signal.
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

/** One short line that fits a table and a terminal: certificates and responses put text of their own into errors. */
export function describeError(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown }
  const words = [code, message].filter(word => typeof word === 'string' && word !== '')
  return words
    .join(': ')
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
    .slice(0, 200)
    .toWellFormed()
}
