// Reads the server's TLS certificate at the start, and again when its files change.
import { constants, X509Certificate } from 'node:crypto'
import type { SecureContextOptions } from 'node:tls'
import type { Logger } from 'pino'
import { watchContent } from '../async/watch-content.ts'
import type { Clock } from '../clock.ts'
import { readLimited, reportingFailures } from '../config/read-file.ts'
import { type CertificatePair, pairErrors, readPair } from '../config/rules/tls.ts'

export interface TlsCertificate {
  readonly initial: SecureContextOptions
  /** Polls the files until `stop` is called, and reports each new valid certificate. */
  watch(onChange: (context: SecureContextOptions) => void): void
  stop(): void
}

interface Dependencies {
  clock: Clock
  logger: Logger
}

/** The error if the certificate files cannot be used. The message contains the file name. */
class CertificateError extends Error {
  override name = 'CertificateError'
}

/** @throws CertificateError */
export function openTlsCertificate(files: CertificatePair, { clock, logger }: Dependencies): TlsCertificate {
  const initialPair = readCertificate(files)
  if ('error' in initialPair) throw new CertificateError(initialPair.error)
  warnIfOutsideValidity(initialPair)
  let stop = () => {}

  /**
   * Logs a warning if the certificate has expired or is not valid yet. The certificate is used anyway, because without
   * a certificate no client could connect.
   */
  function warnIfOutsideValidity({ cert }: CertificatePair): void {
    const { validFrom, validTo } = new X509Certificate(cert)
    const isOver = Date.parse(validTo) < clock.now()
    if (!isOver && Date.parse(validFrom) <= clock.now()) return
    const facts = { file: files.cert, from: validFrom, to: validTo }
    logger.warn(facts, isOver ? 'certificate has expired' : 'certificate is not valid yet')
  }

  return {
    initial: contextOf(initialPair),
    watch(onChange) {
      let current: CertificatePair | Unusable = initialPair
      let inUse = initialPair
      stop = watchContent({
        read() {
          current = readCertificate(files)
          return 'error' in current && current.isUnread ? undefined : comparisonKey(current)
        },
        inUse: () => comparisonKey(inUse),
        intervalMs: 500,
        onChange() {
          if ('error' in current) {
            logger.warn({ fault: current.error }, 'new certificate rejected; the previous one stays in use')
            return
          }
          inUse = current
          onChange(contextOf(current))
          logger.info({ expires: expiryOf(current) }, 'new certificate in use')
          warnIfOutsideValidity(current)
        },
      })
    },
    stop: () => stop(),
  }
}

interface Unusable {
  readonly error: string
  /** Whether the files could not be read. If so, the certificate in them may still be valid. */
  readonly isUnread: boolean
}

function readCertificate(files: CertificatePair): CertificatePair | Unusable {
  let isUnread = false
  const read = reportingFailures(
    (path, maxBytes) => readLimited(path, maxBytes, 0),
    () => {
      isUnread = true
    },
  )
  const { pair, errors } = readPair(files, read)
  const messages = [
    ...errors.map(describeError),
    ...pairErrors(pair).map(({ half, message }) =>
      describeError({ half, message: `${files[half]} ${message}` }),
    ),
  ]
  return messages.length === 0 ? (pair as CertificatePair) : { error: messages.join('; '), isUnread }
}

function describeError({ half, message }: { half: string; message: string }): string {
  return `server.tls.${half}: ${message}`
}

/** Returns a different text for each different state. The text contains the private key, so use it only to compare. */
function comparisonKey(state: CertificatePair | Unusable): string {
  return 'error' in state ? state.error : `${state.cert}\0${state.key}`
}

function contextOf({ cert, key }: CertificatePair): SecureContextOptions {
  return {
    cert,
    key,
    minVersion: 'TLSv1.2',
    // With renegotiation, a client could force repeated handshakes on one connection (CVE-2011-1473).
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  }
}

function expiryOf({ cert }: CertificatePair): string {
  return new Date(new X509Certificate(cert).validTo).toISOString()
}
