// The certificate that clients are shown: read at start, and again whenever its files change.
import { constants, X509Certificate } from 'node:crypto'
import type { SecureContextOptions } from 'node:tls'
import type { Logger } from 'pino'
import type { Clock } from '../clock.ts'
import { type CertificatePair, faultsOfPair, readPair } from '../config/rules/tls.ts'
import { readLimited } from '../config/yaml/read-file.ts'

export interface Certificates {
  /** What the listener starts with. */
  readonly first: SecureContextOptions
  /** Looks after the files until `stop`; whatever is new and good is told. */
  watch(onChange: (context: SecureContextOptions) => void): void
  stop(): void
}

interface Parts {
  clock: Clock
  logger: Logger
}

/** The files cannot be served with; the sentence names the file. */
export class CertificateError extends Error {
  override name = 'CertificateError'
}

/** Milliseconds between two looks at the files. */
const interval = 1_000

/**
 * @param files `server.tls`
 * @throws CertificateError
 */
export function openCertificates(files: CertificatePair, { clock, logger }: Parts): Certificates {
  const first = read(files)
  if ('fault' in first) throw new CertificateError(first.fault)
  warnOfDates(first)
  let timer: NodeJS.Timeout | undefined

  /** Served all the same: to serve nothing would be worse. */
  function warnOfDates({ cert }: CertificatePair): void {
    const { validFrom, validTo } = new X509Certificate(cert)
    const isOver = Date.parse(validTo) < clock.now()
    if (!isOver && Date.parse(validFrom) <= clock.now()) return
    const facts = { file: files.cert, from: validFrom, to: validTo }
    logger.warn(facts, isOver ? 'the certificate has expired' : 'the certificate is not valid yet')
  }

  return {
    first: contextOf(first),
    watch(onChange) {
      let shown: CertificatePair = first
      let seen = keyOf(first)
      let told = seen
      // Read, rather than watched for events: an editor renames, Kubernetes swaps a symlink two folders up, a
      // network file system says nothing. Two small files a second cost nothing.
      timer = setInterval(() => {
        const now = read(files)
        const last = seen
        seen = keyOf(now)
        // The second file may still be on its way: what does not fit is bad only when it is still there a look later.
        if (seen === told || ('fault' in now && seen !== last)) return
        told = seen
        if ('fault' in now) {
          logger.warn({ fault: now.fault }, 'the new certificate is not taken, the one before stays')
          return
        }
        if (keyOf(now) === keyOf(shown)) return
        shown = now
        onChange(contextOf(now))
        logger.info({ expires: expiryOf(now) }, 'a new certificate is taken')
        warnOfDates(now)
      }, interval)
      timer.unref()
    },
    stop: () => clearInterval(timer),
  }
}

function read(files: CertificatePair): CertificatePair | { fault: string } {
  const { pair, faults } = readPair(files, (path, maxBytes) => readLimited(path, maxBytes, 0))
  const wrong = [
    ...faults.map(said),
    ...faultsOfPair(pair).map(({ half, message }) => said({ half, message: `${files[half]} ${message}` })),
  ]
  return wrong.length === 0 ? (pair as CertificatePair) : { fault: wrong.join('; ') }
}

function said({ half, message }: { half: string; message: string }): string {
  return `server.tls.${half}: ${message}`
}

/** For comparison only. */
function keyOf(state: CertificatePair | { fault: string }): string {
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
