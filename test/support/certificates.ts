// Self-signed certificates for tests. All certificates except `expired` are valid from 2020 to 2120.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export interface TestCertificate {
  /** The paths of the PEM files. `cert` and `key` below are the contents of the files. */
  readonly files: { readonly cert: string; readonly key: string }
  readonly cert: string
  readonly key: string
}

/** Two certificates. Each one is for localhost and 127.0.0.1. */
export const first = testCertificate('first')
export const second = testCertificate('second')
/** A certificate only for `courses.internal`. */
export const courses = testCertificate('courses')
/** A certificate for webhook receivers: `hooks.test`, `redir.test`, `slow.test` and `big.test`. */
export const receivers = testCertificate('receivers')
/** A certificate for `login.microsoftonline.com`. */
export const microsoft = testCertificate('microsoft')
/** A certificate that expired in 2021, for `badcert.test`. */
export const expired = testCertificate('expired')

function testCertificate(name: string): TestCertificate {
  const file = (half: string) =>
    fileURLToPath(new URL(`certificates/test-only-${name}.${half}.pem`, import.meta.url))
  const files = { cert: file('cert'), key: file('key') }
  return { files, cert: readFileSync(files.cert, 'utf8'), key: readFileSync(files.key, 'utf8') }
}

/** Returns TLS settings as text, for the option `settings.server` of `startGateway`. */
export function tlsSettings({ cert, key }: { cert: string; key: string }): string {
  return `, tls: ${JSON.stringify({ cert, key })}`
}
