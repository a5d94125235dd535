// Compares the response to a client with the responses to two questions about the same request (docs/forward-auth.md).
// One question describes the request in `X-Forwarded-*` headers (`inFields`), and the other in its own path (`inPath`).
import { decodeJwt } from 'jose'
import { isGatewayPath } from '../../../src/config/formats/path-pattern.ts'
import type { Config } from '../../../src/config/sections/schema.ts'
import { parseRequestTarget } from '../../../src/gate/parsing/request-target.ts'
import { type Answer, type Echo, type Pair, pairsOf } from '../../explain/agreement/exchange.ts'
import { identityFields } from '../ask.ts'

export interface Happened {
  /** The response to the request of a client. */
  readonly client: Answer
  /** The requests that upstreams received from the client. */
  readonly received: Echo['received']
  /** The route of the client's request; undefined if the gateway refused the request before a route matched. */
  readonly route: string | undefined
  readonly inFields: Answer
  readonly inPath: Answer
  /** The user's daily uses after the request of the client and after each of the two questions. */
  readonly uses: readonly number[]
  readonly reachedByQuestions: number
}

interface Sent {
  readonly method: string
  /** The request target. */
  readonly path: string
}

/** @returns the differences that are not allowed, one sentence each */
export function differencesOf(
  { client, received, route, inFields, inPath, uses, reachedByQuestions }: Happened,
  { method, path }: Sent,
  config: Config,
): string[] {
  const differences: string[] = []
  const same = (what: string, expected: unknown, came: unknown) => {
    const [one, other] = [JSON.stringify(expected), JSON.stringify(came)]
    if (one !== other) differences.push(`${what}: expected ${one}, received ${other}`)
  }
  same('requests to upstreams', 0, reachedByQuestions)
  // Both questions must get the same response. For HEAD, the body is not compared, because there is none.
  same('forms', told(inFields, method), told(inPath, method))
  const code = codeOf(inFields)
  const outcome = `${inFields.status} ${code ?? ''}`.trim()
  const isUnmerged = hasDuplicateSlashes(path) && !mayHaveSlashes(route, config)
  if (isUnmerged && route !== undefined) same('duplicate slashes', '400 path_invalid', outcome)
  if (isUnmerged && outcome === '400 path_invalid') return differences
  if (isLocal(path, config)) {
    const allowed = codeOf(client) === 'path_invalid' ? '400 path_invalid' : '404 route_unknown'
    same('gateway path', allowed, outcome)
    return differences
  }
  same('uses of the day', uses[0], uses[1])
  same('uses of the day', uses[0], uses[2])
  if (received.length > 0) {
    same('forwarded', '200', outcome)
    same('identity', identityOf(pairsOf(received[0]?.rawHeaders ?? [])), identityOf(inFields.fields))
    return differences
  }
  same('refused', told(client, method), told(inFields, method))
  return differences
}

/** Returns the parts of a response that must be equal in both responses. */
function told({ status, fields, body }: Answer, method: string) {
  const isRefusal = status >= 400
  const compared = fields
    .filter(([name]) => !variable.has(name.toLowerCase()))
    // Identity headers are not compared here. The 204 for a client has none, and the assertion is different in every
    // 200.
    .filter(([name]) => !identityFields.includes(name.toLowerCase()))
  return { status, fields: compared, ...(isRefusal && method !== 'HEAD' ? { body } : {}) }
}

/** Headers that differ in every response, and headers of the connection. */
const variable = new Set(['date', 'x-request-id', 'connection', 'keep-alive'])

function codeOf({ fields }: Answer): string | undefined {
  return fields.find(([name]) => name.toLowerCase() === 'x-peage-error')?.[1]
}

/**
 * Returns the identity headers. A missing header counts as empty. An assertion is replaced with its claims, without the
 * claims that are times.
 */
function identityOf(fields: readonly Pair[]): Record<string, unknown> {
  return Object.fromEntries(
    identityFields.map(name => {
      const values = fields.flatMap(([other, value]) => (other.toLowerCase() === name ? [value] : []))
      if (values.length > 1) return [name, values]
      const [value = ''] = values
      if (name !== 'x-peage-assertion' || value === '') return [name, value]
      const { aud, iss, sub, plan } = decodeJwt(value)
      return [name, { aud, iss, sub, plan }]
    }),
  )
}

function hasDuplicateSlashes(path: string): boolean {
  return path.split('?', 1)[0]?.includes('//') === true
}

function mayHaveSlashes(route: string | undefined, { routes }: Config): boolean {
  return routes.find(({ name }) => name === route)?.allow_in_path.includes('double_slash') === true
}

/** Returns whether the gateway itself serves the path. */
function isLocal(path: string, { routes }: Config): boolean {
  const segments = parseRequestTarget(path)?.segments
  if (segments === undefined) return false
  if (isGatewayPath(segments)) return true
  const upgrade = '/api/v1/subscription/upgrade'
  return `/${segments.join('/')}` === upgrade && !routes.some(route => route.path === upgrade)
}
