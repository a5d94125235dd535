// Checks that the files of `server.tls` can be served with; reported with line and column, before anything listens.
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import type { Diagnostic } from '../diagnostics.ts'
import type { Validation } from '../validate.ts'
import { readErrorReason } from '../yaml/interpolate.ts'
import { maxFileBytes, type ReadFile } from '../yaml/read-file.ts'
import { diagnosticAt, type YamlSource } from '../yaml/yaml-source.ts'

type Half = 'cert' | 'key'

/** The certificate (or its chain, leaf first) and the private key, both in PEM. */
export type CertificatePair = Readonly<Record<Half, string>>

/** What is wrong with a file; the message follows its name. */
export interface CertificateError {
  readonly half: Half
  readonly message: string
}

/** @param validation what is already known to be invalid: nothing is concluded from it */
export function checkCertificate(yaml: YamlSource, validation: Validation, readFile: ReadFile): Diagnostic[] {
  const { server } = yaml.value as { server?: { tls?: Partial<Record<Half, unknown>> | null } | null }
  const named = (half: Half) => {
    const file = server?.tls?.[half]
    return typeof file === 'string' && validation.isValid(`/server/tls/${half}`) ? { [half]: file } : {}
  }
  const { pair, faults: errors } = readPair({ ...named('cert'), ...named('key') }, readFile)
  return [...errors, ...pairErrors(pair)].map(({ half, message }) =>
    diagnosticAt(yaml, `/server/tls/${half}`, message),
  )
}

/** Reads the named files. @returns the texts of those that can be read, and why the others cannot */
export function readPair(
  files: Partial<CertificatePair>,
  readFile: ReadFile,
): { pair: Partial<CertificatePair>; faults: CertificateError[] } {
  const pair: Partial<Record<Half, string>> = {}
  const errors: CertificateError[] = []
  for (const [half, file] of Object.entries(files) as [Half, string][]) {
    try {
      pair[half] = readFile(file, maxFileBytes)
    } catch (error) {
      errors.push({
        half,
        message: `cannot read the file ${JSON.stringify(file)} (${readErrorReason(error)})`,
      })
    }
  }
  return { pair, faults: errors }
}

/** Why the texts cannot be served with; empty if they parse and belong together. */
export function pairErrors({ cert, key }: Partial<CertificatePair>): CertificateError[] {
  const certificate = cert === undefined ? undefined : attempt(() => new X509Certificate(cert))
  const privateKey = key === undefined ? undefined : attempt(() => createPrivateKey(key))
  const errors: CertificateError[] = []
  if (cert !== undefined && certificate === undefined) {
    errors.push({ half: 'cert', message: 'holds no certificate in PEM' })
  }
  if (key !== undefined && privateKey === undefined) errors.push({ half: 'key', message: keyError(key) })
  if (certificate === undefined || privateKey === undefined) return errors
  if (!isKeyOf(certificate, privateKey)) {
    return [{ half: 'key', message: 'is not the key of the certificate in server.tls.cert' }]
  }
  try {
    createSecureContext({ cert, key })
  } catch (error) {
    // OpenSSL's own message: a key that is too short, a chain with a broken link.
    return [{ half: 'cert', message: `cannot be served with (${(error as Error).message})` }]
  }
  return []
}

function keyError(key: string): string {
  return /ENCRYPTED/.test(key)
    ? 'holds a key that is encrypted with a passphrase; decrypt it'
    : 'holds no private key in PEM'
}

function isKeyOf(certificate: X509Certificate, key: KeyObject): boolean {
  return attempt(() => certificate.checkPrivateKey(key)) === true
}

function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
