// Whether the files that `server.tls` names can be served with: said with line and column, before anything listens.
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import type { Fault } from '../diagnostics.ts'
import type { Shape } from '../validate.ts'
import { reasonOf } from '../yaml/interpolate.ts'
import { maxFileBytes, type ReadFile } from '../yaml/read-file.ts'
import { faultAt, type Sheet } from '../yaml/yaml-source.ts'

type Half = 'cert' | 'key'

/** The certificate (or the chain, its own first) and the private key, both in PEM. */
export type CertificatePair = Readonly<Record<Half, string>>

/** What is wrong with a file, in words that follow its name. */
export interface CertificateFault {
  readonly half: Half
  readonly message: string
}

/** @param shape what is known to be wrong already: nothing is concluded from it */
export function checkCertificate(sheet: Sheet, shape: Shape, readFile: ReadFile): Fault[] {
  const { server } = sheet.value as { server?: { tls?: Partial<Record<Half, unknown>> | null } | null }
  const named = (half: Half) => {
    const file = server?.tls?.[half]
    return typeof file === 'string' && shape.sound(`/server/tls/${half}`) ? { [half]: file } : {}
  }
  const { pair, faults } = readPair({ ...named('cert'), ...named('key') }, readFile)
  return [...faults, ...faultsOfPair(pair)].map(({ half, message }) =>
    faultAt(sheet, `/server/tls/${half}`, message),
  )
}

/** Reads the files that are named. @returns the texts of those that can be read, and why the others cannot */
export function readPair(
  files: Partial<CertificatePair>,
  readFile: ReadFile,
): { pair: Partial<CertificatePair>; faults: CertificateFault[] } {
  const pair: Partial<Record<Half, string>> = {}
  const faults: CertificateFault[] = []
  for (const [half, file] of Object.entries(files) as [Half, string][]) {
    try {
      pair[half] = readFile(file, maxFileBytes)
    } catch (error) {
      faults.push({ half, message: `cannot read the file ${JSON.stringify(file)} (${reasonOf(error)})` })
    }
  }
  return { pair, faults }
}

/** What keeps the texts from being served with; nothing where they parse and belong together. */
export function faultsOfPair({ cert, key }: Partial<CertificatePair>): CertificateFault[] {
  const certificate = cert === undefined ? undefined : attempt(() => new X509Certificate(cert))
  const privateKey = key === undefined ? undefined : attempt(() => createPrivateKey(key))
  const faults: CertificateFault[] = []
  if (cert !== undefined && certificate === undefined) {
    faults.push({ half: 'cert', message: 'holds no certificate in PEM' })
  }
  if (key !== undefined && privateKey === undefined) faults.push({ half: 'key', message: whyNoKey(key) })
  if (certificate === undefined || privateKey === undefined) return faults
  if (!belongs(certificate, privateKey)) {
    return [{ half: 'key', message: 'is not the key of the certificate in server.tls.cert' }]
  }
  try {
    createSecureContext({ cert, key })
  } catch (error) {
    // OpenSSL's own sentence: a key that is too short, a chain with a broken link.
    return [{ half: 'cert', message: `cannot be served with (${(error as Error).message})` }]
  }
  return []
}

function whyNoKey(key: string): string {
  return /ENCRYPTED/.test(key)
    ? 'holds a key that is encrypted with a passphrase; decrypt it'
    : 'holds no private key in PEM'
}

function belongs(certificate: X509Certificate, key: KeyObject): boolean {
  return attempt(() => certificate.checkPrivateKey(key)) === true
}

function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
