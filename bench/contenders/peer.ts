// Contains the code that all peers share. A peer is a proxy of another project. All peers accept the gateway's access
// tokens. Some peers call an auth service for each request.
import { createPublicKey, type JsonWebKey } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import {
  type Running,
  startMeasured,
  startProgram,
  type TemporaryFolder,
  temporaryFolder,
} from '../../test/support/processes.ts'
import { canConnect, findProgram, freePort } from '../../test/support/servers.ts'
import { answersTheUpstreams, refuses, tellsWhoCalls, wantsToken } from '../checks.ts'
import { bearer, type Contender, coursePath, type Row, type Stage } from '../contender.ts'

/**
 * The running auth services, by cache time in seconds. Peers with the same cache time share one auth service. With a
 * separate auth service for each peer, Postgres could run out of connections.
 */
const authServices = new Map<number, Promise<Running>>()

/**
 * @param remember the number of seconds for which the auth service caches a verified token and its user; 0 for no cache
 */
function startAuthService({ gateway: { running, database } }: Stage, remember: number): Promise<Running> {
  const program = fileURLToPath(new URL('./serve-auth.js', import.meta.url))
  const flags = ['--remember', String(remember), `http://127.0.0.1:${running.port}`, database]
  const service = authServices.get(remember) ?? startProgram(program, flags)
  authServices.set(remember, service)
  return service
}

function lacksPostgres({ services }: Stage): string | undefined {
  return services === undefined ? 'its auth service needs Postgres, which is missing' : undefined
}

interface ProxyPlan {
  readonly program: string
  readonly flags: readonly string[]
  readonly folder: TemporaryFolder
  readonly port: number
  /** The environment variables to add to the variables of this process. The value `undefined` removes a variable. */
  readonly env?: NodeJS.ProcessEnv
  /** Returns whether the CPU time of this process counts. By default, all processes of the proxy count. */
  counts?(pid: number): boolean
}

export function startProxy({ program, flags, folder, port, env, counts }: ProxyPlan): Promise<Running> {
  const plan = {
    program,
    flags,
    folder: folder.path,
    env: { ...process.env, ...env },
    user: undefined,
    port,
    url: `http://127.0.0.1:${port}`,
    isReady: () => canConnect(port),
  }
  return startMeasured(plan, counts)
}

interface Peer {
  readonly name: string
  readonly version: string
  readonly proxy: Running
  /** The service that looks up users. Without it, the proxy trusts the claims of the token. */
  readonly authService?: Running
}

/** Returns the row of a peer. The request is the same as in the gateway's row `bearer`. */
export function peerRow(stage: Stage, { name, version, proxy, authService }: Peer): Row {
  const { premium, inactive } = stage.gateway.callers
  const path = coursePath('guarded')
  const looksUp = refuses('an inactive user gets 401', { path, headers: bearer(inactive.token) }, 401)
  return {
    name,
    version,
    running: { ...proxy, pids: [...proxy.pids, ...(authService?.pids ?? [])] },
    question: { path, headers: bearer(premium.token) },
    status: 200,
    // The proxy does not keep a core busy, because it waits for its auth service or is faster than the load generator.
    fillsItsCore: false,
    checks: [
      answersTheUpstreams,
      ...wantsToken('guarded', premium.token),
      ...(authService === undefined ? [] : [looksUp]),
      tellsWhoCalls('guarded', bearer(premium.token), premium),
    ],
  }
}

interface AuthServicePeer {
  readonly name: string
  /** The name of the program, which must be in PATH. */
  readonly program: string
  /** The number of seconds for which the auth service caches a token and its user. */
  readonly remember: number
  /** Writes the configuration file of the peer. Returns the options that start the peer with this file. */
  configure(places: Places): Pick<ProxyPlan, 'flags' | 'env' | 'counts'>
  versionOf(program: string): Promise<string>
}

export interface Places {
  readonly folder: string
  readonly port: number
  /** The port of the upstream. */
  readonly upstream: number
  /** The port of the auth service. */
  readonly decisions: number
}

/** Returns the contender for a proxy that calls an auth service for each request. */
export function authServicePeer({
  name,
  remember,
  configure,
  versionOf,
  ...peer
}: AuthServicePeer): Contender {
  const program = findProgram(peer.program)
  return {
    rows: [name],
    absence: stage => (program === undefined ? 'not installed' : lacksPostgres(stage)),
    async start(stage) {
      if (program === undefined) throw new Error('not installed')
      const authService = await startAuthService(stage, remember)
      const port = await freePort()
      const folder = temporaryFolder()
      const places = { folder: folder.path, port, upstream: stage.upstream.port, decisions: authService.port }
      const proxy = await startProxy({ program, folder, port, ...configure(places) })
      return [peerRow(stage, { name, version: await versionOf(program), proxy, authService })]
    },
  }
}

/** Returns the gateway's public key as PEM, for proxies that cannot read a JWKS. */
export async function publicKey({ gateway: { running } }: Stage): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${running.port}/.well-known/jwks.json`)
  const { keys } = (await response.json()) as { keys: JsonWebKey[] }
  const [key] = keys
  if (key === undefined) throw new Error('the gateway publishes no key')
  return createPublicKey({ key, format: 'jwk' }).export({ type: 'spki', format: 'pem' }).toString()
}
