// Checks the TLS files before the gateway listens: the files of `server.tls`, the `tls.ca` files of upstreams, and the
// files that `postgres://` addresses name. Also checks that an upstream with `tls` has an https target.
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { appendToPointer, type Diagnostic } from '../diagnostics.ts'
import { parsePostgres } from '../formats/store-addresses.ts'
import { maxFileBytes, type ReadFile, readErrorReason, tryRead } from '../read-file.ts'
import type { Validation } from '../validate.ts'
import { diagnosticAt, type YamlSource } from '../yaml/yaml-source.ts'
import { declaredUpstreams, targetUrl } from './declarations.ts'

type Half = 'cert' | 'key'

/** A certificate and its private key, both in PEM. `cert` may also be a chain, with the server certificate first. */
export type CertificatePair = Readonly<Record<Half, string>>

/** An error in a file. The message completes a sentence that starts with the file name. */
interface CertificateError {
  readonly half: Half
  readonly message: string
}

export function checkCertificate(yaml: YamlSource, validation: Validation, readFile: ReadFile): Diagnostic[] {
  const { server } = yaml.value as { server?: { tls?: Partial<Record<Half, unknown>> | null } | null }
  const named = (half: Half) => {
    const file = server?.tls?.[half]
    return typeof file === 'string' && validation.isValid(`/server/tls/${half}`) ? { [half]: file } : {}
  }
  const { pair, errors } = readPair({ ...named('cert'), ...named('key') }, readFile)
  return [...errors, ...pairErrors(pair)].map(({ half, message }) =>
    diagnosticAt(yaml, `/server/tls/${half}`, message),
  )
}

/** Reads the given files. @returns the texts of the files that can be read, and errors for the others */
export function readPair(
  files: Partial<CertificatePair>,
  readFile: ReadFile,
): { pair: Partial<CertificatePair>; errors: CertificateError[] } {
  const pair: Partial<Record<Half, string>> = {}
  const errors: CertificateError[] = []
  for (const [half, file] of Object.entries(files) as [Half, string][]) {
    const { text, error } = tryRead(file, maxFileBytes, readFile)
    if (error === undefined) pair[half] = text
    else errors.push({ half, message: error })
  }
  return { pair, errors }
}

/** Returns the errors of a certificate and its key. Empty if both are valid and belong together. */
export function pairErrors({ cert, key }: Partial<CertificatePair>): CertificateError[] {
  const certificate = cert === undefined ? undefined : attempt(() => new X509Certificate(cert))
  const privateKey = key === undefined ? undefined : attempt(() => createPrivateKey(key))
  const errors: CertificateError[] = []
  if (cert !== undefined && certificate === undefined) {
    errors.push({ half: 'cert', message: 'does not contain a certificate in PEM format' })
  }
  if (key !== undefined && privateKey === undefined) errors.push({ half: 'key', message: keyError(key) })
  if (certificate === undefined || privateKey === undefined) return errors
  if (!isKeyOf(certificate, privateKey)) {
    return [{ half: 'key', message: 'does not match the certificate in server.tls.cert' }]
  }
  try {
    createSecureContext({ cert, key })
  } catch (error) {
    // OpenSSL creates the message of this error. Causes are, for example, a key that is too short, or a broken chain.
    return [{ half: 'cert', message: `cannot be used for TLS (${(error as Error).message})` }]
  }
  return []
}

function keyError(key: string): string {
  return /ENCRYPTED/.test(key)
    ? 'contains a key that is encrypted with a passphrase; decrypt the key'
    : 'does not contain a private key in PEM format'
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

/**
 * Reports an upstream with `tls` that has only `http:` targets. The key `tls` would suggest a protection that does not
 * exist.
 */
export function checkTlsIsUsed(yaml: YamlSource, validation: Validation): Diagnostic[] {
  return upstreamsWithTls(yaml).flatMap(({ pointer, targets }) =>
    !Array.isArray(targets) ||
    !validation.isValid(appendToPointer(pointer, 'targets')) ||
    targets.some(target => /^https:/i.test(targetUrl(target) ?? ''))
      ? []
      : [
          diagnosticAt(
            yaml,
            appendToPointer(pointer, 'tls'),
            'applies only to https targets, but this upstream has none',
          ),
        ],
  )
}

export function checkAuthorities(yaml: YamlSource, validation: Validation, readFile: ReadFile): Diagnostic[] {
  return upstreamsWithTls(yaml).flatMap(({ pointer, ca }) => {
    const at = appendToPointer(appendToPointer(pointer, 'tls'), 'ca')
    if (typeof ca !== 'string' || !validation.isValid(at)) return []
    const message = authorityError(ca, readFile)
    return message === undefined ? [] : [diagnosticAt(yaml, at, message)]
  })
}

interface WithTls {
  pointer: string
  /** `targets` and `ca` are not validated yet. */
  targets: unknown
  ca: unknown
}

function upstreamsWithTls(yaml: YamlSource): WithTls[] {
  return (declaredUpstreams(yaml) ?? []).flatMap(({ pointer, keys: { targets, tls } }) =>
    typeof tls === 'object' && tls !== null ? [{ pointer, targets, ca: (tls as { ca?: unknown }).ca }] : [],
  )
}

function authorityError(path: string, readFile: ReadFile): string | undefined {
  const { text, error } = tryRead(path, maxFileBytes, readFile)
  if (error !== undefined) return error
  const blocks = text.match(/-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----/gs) ?? []
  return blocks.length > 0 && blocks.every(pem => attempt(() => new X509Certificate(pem)))
    ? undefined
    : 'contains no certificate in PEM format, or an invalid one'
}

/** Checks the files that database addresses name. The driver would report a missing file only when it connects. */
export function checkDatabaseFiles(
  yaml: YamlSource,
  validation: Validation,
  readFile: ReadFile,
): Diagnostic[] {
  const { storage } = yaml.value as { storage?: Record<string, unknown> | null }
  return (['postgres', 'postgres_listen'] as const).flatMap(key => {
    const pointer = appendToPointer('/storage', key)
    const address = storage?.[key]
    if (typeof address !== 'string' || address === '' || !validation.isValid(pointer)) return []
    const { searchParams } = new URL(parsePostgres(address))
    return ['sslrootcert', 'sslcert', 'sslkey'].flatMap(name => {
      const file = searchParams.get(name)
      if (!file) return []
      try {
        readFile(file, maxFileBytes)
        return []
      } catch (error) {
        const message = `cannot read the ${name} file ${JSON.stringify(file)} (${readErrorReason(error)})`
        return [diagnosticAt(yaml, pointer, message)]
      }
    })
  })
}
