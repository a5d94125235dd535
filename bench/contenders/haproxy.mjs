// HAProxy with jwt_verify: it believes the token's claims and looks no user up.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../ports.mjs'
import { run, startServer, temporaryFolder } from '../processes.mjs'
import { findProgram } from '../programs.mjs'
import { peerRow, publicKey } from './peer.mjs'

const name = 'HAProxy jwt_verify (no user look-up)'

/** @type {import('../contender.mjs').Contender} */
export const haproxy = {
  rows: [name],
  absence: () => (findProgram('haproxy') === undefined ? 'not installed' : undefined),
  async start(stage) {
    const program = /** @type {string} */ (findProgram('haproxy'))
    const port = await freePort()
    const { path: folder } = temporaryFolder()
    const key = join(folder, 'key.pem')
    writeFileSync(key, await publicKey(stage))
    const file = join(folder, 'haproxy.cfg')
    writeFileSync(file, configuration({ port, upstream: stage.upstream.port, key }))
    const proxy = await startServer(program, ['-db', '-f', file], { port })
    const version = /HAProxy version \S+/.exec(await run(program, ['-v']))?.[0] ?? 'HAProxy'
    return [peerRow(name, [proxy], stage, { version, looksUsersUp: false })]
  },
}

/** @param {{ port: number, upstream: number, key: string }} plan */
function configuration({ port, upstream, key }) {
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
