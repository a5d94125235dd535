// A certificate authority of a test's own, and a server's certificate that it signed.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Issued {
  /** The file with the authority's certificate. */
  ca: string
  cert: string
  key: string
}

/** @param folder where the files go @param name of the authority @param subject `DNS:courses.internal`, `IP:127.0.0.1` */
export function issue(folder: string, name: string, subject: string): Issued {
  const file = (suffix: string) => join(folder, `${name}.${suffix}`)
  const openssl = (...words: string[]) => execFileSync('openssl', words, { stdio: 'pipe' })
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  openssl(
    'req',
    '-x509',
    ...newKey,
    '-keyout',
    file('ca.key'),
    '-out',
    file('ca'),
    '-days',
    '2',
    '-subj',
    `/CN=${name}`,
  )
  openssl('req', ...newKey, '-keyout', file('key'), '-out', file('csr'), '-subj', '/CN=server')
  writeFileSync(file('ext'), `subjectAltName=${subject}\n`)
  openssl(
    ...['x509', '-req', '-in', file('csr'), '-CA', file('ca'), '-CAkey', file('ca.key'), '-CAcreateserial'],
    ...['-days', '2', '-extfile', file('ext'), '-out', file('cert')],
  )
  return { ca: file('ca'), cert: readFileSync(file('cert'), 'utf8'), key: readFileSync(file('key'), 'utf8') }
}
