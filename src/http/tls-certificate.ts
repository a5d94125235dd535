// The certificate that clients are shown: read at start, and again whenever its files change.
import { constants, X509Certificate } from 'node:crypto'
import type { SecureContextOptions } from 'node:tls'
import type { Logger } from 'pino'
import type { Clock } from '../clock.ts'
import { type CertificatePair, pairErrors, readPair } from '../config/rules/tls.ts'
import { readLimited } from '../config/yaml/read-file.ts'

export interface TlsCertificate {
  /** What the listener starts with. */
  readonly initial: SecureContextOptions
  /** Looks after the files until `stop`; whatever is new and good is told. */
  watch(onChange: (context: SecureContextOptions) => void): void
  stop(): void
}

interface Dependencies {
  clock: Clock
  logger: Logger
}

/** The files cannot be served with; the sentence names the file. */
export class CertificateError extends Error {
  override name = 'CertificateError'
}

/** Milliseconds between two looks at the files. */
const pollIntervalMs = 1_000

/**
 * @param files `server.tls`
 * @throws CertificateError
 */
export function openTlsCertificate(files: CertificatePair, { clock, logger }: Dependencies): TlsCertificate {
  const initialPair = readCertificate(files)
  if ('fault' in initialPair) throw new CertificateError(initialPair.fault)
  warnIfOutsideValidity(initialPair)
  let timer: NodeJS.Timeout | undefined

  /** Served all the same: to serve nothing would be worse. */
  function warnIfOutsideValidity({ cert }: CertificatePair): void {
    const { validFrom, validTo } = new X509Certificate(cert)
    const isOver = Date.parse(validTo) < clock.now()
    if (!isOver && Date.parse(validFrom) <= clock.now()) return
    const facts = { file: files.cert, from: validFrom, to: validTo }
    logger.warn(facts, isOver ? 'the certificate has expired' : 'the certificate is not valid yet')
  }

  return {
    initial: contextOf(initialPair),
    watch(onChange) {
      let active: CertificatePair = initialPair
      let seenKey = comparisonKey(initialPair)
      let reportedKey = seenKey
      // Read, rather than watched for events: an editor renames, Kubernetes swaps a symlink two folders up, a
      // network file system says nothing. Two small files a second cost nothing.
      timer = setInterval(() => {
        const current = readCertificate(files)
        const previousKey = seenKey
        seenKey = comparisonKey(current)
        // The second file may still be on its way: what does not fit is bad only when it is still there a look later.
        if (seenKey === reportedKey || ('fault' in current && seenKey !== previousKey)) return
        reportedKey = seenKey
        if ('fault' in current) {
          logger.warn({ fault: current.fault }, 'new certificate rejected; the previous one stays in use')
          return
        }
        if (comparisonKey(current) === comparisonKey(active)) return
        active = current
        onChange(contextOf(current))
        logger.info({ expires: expiryOf(current) }, 'a new certificate is taken')
        warnIfOutsideValidity(current)
      }, pollIntervalMs)
      timer.unref()
    },
    stop: () => clearInterval(timer),
  }
}

function readCertificate(files: CertificatePair): CertificatePair | { fault: string } {
  const { pair, faults } = readPair(files, (path, maxBytes) => readLimited(path, maxBytes, 0))
  const messages = [
    ...faults.map(describeFault),
    ...pairErrors(pair).map(({ half, message }) =>
      describeFault({ half, message: `${files[half]} ${message}` }),
    ),
  ]
  return messages.length === 0 ? (pair as CertificatePair) : { fault: messages.join('; ') }
}

function describeFault({ half, message }: { half: string; message: string }): string {
  return `server.tls.${half}: ${message}`
}

/** For comparison only. */
function comparisonKey(state: CertificatePair | { fault: string }): string {
  return 'fault' in state ? state.fault : `${state.cert}\0${state.key}`
}

function contextOf({ cert, key }: CertificatePair): SecureContextOptions {
  return {
    cert,
    key,
    minVersion: 'TLSv1.2',
    // A client could have the handshake computed again and again on one connection (CVE-2011-1473).
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  }
}

function expiryOf({ cert }: CertificatePair): string {
  return new Date(new X509Certificate(cert).validTo).toISOString()
}
