// HAProxy with jwt_verify. This configuration trusts the claims of the token and does not look up the user.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run, temporaryFolder } from '../../test/support/processes.ts'
import { findProgram, freePort } from '../../test/support/servers.ts'
import type { Contender } from '../contender.ts'
import { peers } from '../row-names.ts'
import { peerRow, publicKey, startProxy } from './peer.ts'

const name = peers.haproxy
const program = findProgram('haproxy')

export const haproxy: Contender = {
  rows: [name],
  absence: () => (program === undefined ? 'not installed' : undefined),
  async start(stage) {
    if (program === undefined) throw new Error('not installed')
    const port = await freePort()
    const folder = temporaryFolder()
    const key = join(folder.path, 'key.pem')
    writeFileSync(key, await publicKey(stage))
    const file = join(folder.path, 'haproxy.cfg')
    writeFileSync(file, configuration(port, stage.upstream.port, key))
    const proxy = await startProxy({ program, flags: ['-db', '-f', file], folder, port })
    const version = /HAProxy version \S+/.exec(await run(program, ['-v']))?.[0] ?? 'HAProxy'
    return [peerRow(stage, { name, version, proxy })]
  },
}

function configuration(port: number, upstream: number, key: string): string {
  return `global
  nbthread 1
  maxconn 1024
defaults
  mode http
  timeout connect 1s
  timeout client 60s
  timeout server 60s
frontend clients
  bind 127.0.0.1:${port}
  http-request set-var(txn.token) http_auth_bearer
  http-request set-var(txn.now) date()
  http-request set-var(txn.expires) var(txn.token),jwt_payload_query('$.exp','int')
  http-request deny deny_status 401 unless { var(txn.token) -m found }
  http-request deny deny_status 401 unless { var(txn.token),jwt_header_query('$.alg') -m str ES256 }
  http-request deny deny_status 401 unless { var(txn.token),jwt_header_query('$.typ') -m str at+jwt }
  http-request deny deny_status 401 unless { var(txn.token),jwt_verify('ES256','${key}') -m int 1 }
  http-request deny deny_status 401 unless { var(txn.token),jwt_payload_query('$.iss') -m str peage }
  http-request deny deny_status 401 unless { var(txn.token),jwt_payload_query('$.aud') -m str peage }
  http-request deny deny_status 401 if { var(txn.expires),sub(txn.now) -m int lt 0 }
  http-request set-header X-User-Id %[var(txn.token),jwt_payload_query('$.sub')]
  http-request set-header X-User-Plan %[var(txn.token),jwt_payload_query('$.plan')]
  default_backend service
backend service
  http-reuse always
  server upstream 127.0.0.1:${upstream}
`
}
