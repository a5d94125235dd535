// Compares the result of a real request with the explanation of this request by `peage explain`: status, error code,
// upstream, URL and headers.
import type { Explanation } from '../../../src/explain/explain.ts'
import type { HeaderDiff } from '../../../src/explain/header-diff.ts'
import type { Answer, Echo, Pair } from './exchange.ts'

export interface Happened {
  readonly sent: readonly Pair[]
  readonly answer: Answer
  readonly upstreams: readonly Echo[]
  /** The headers with which the upstreams respond. */
  readonly answered: readonly Pair[]
  /** The user that sent the request, or undefined for an anonymous request. */
  readonly user: { readonly id: number; readonly email: string } | undefined
  /** The id of the API key of the request, or undefined for a request without a key. */
  readonly keyId: string | undefined
}

/** @returns the differences between explanation and result, one sentence each */
export function disagreements(explanation: Explanation, happened: Happened): string[] {
  const differences: string[] = []
  const same = (what: string, explained: unknown, came: unknown) => {
    if (explained !== came) differences.push(`${what}: explained ${explained}, received ${came}`)
  }
  const { refusal, upstream, own, headers, request: question } = explanation
  const { sent, answer, answered } = happened
  const received = happened.upstreams.flatMap(({ name, url, received }) =>
    received.map(request => ({ ...request, name, at: url + request.url })),
  )
  const code = valuesOf(answer.fields).get('x-peage-error')
  same('requests upstream', upstream === null ? 0 : 1, received.length)
  if (own === null || refusal !== null) {
    same('status', refusal?.status ?? 200, answer.status)
    same('code', refusal?.code, code)
  } else if (decidedBefore.has(code ?? '')) differences.push(`an endpoint was explained, received ${code}`)
  if (refusal !== null && question.method !== 'HEAD') same('error', refusal.sentence, errorOf(answer))
  const [request] = received
  if (upstream !== null && request !== undefined) {
    same('upstream', upstream.name, request.name)
    same('url', upstream.url, request.at)
    same('method', question.method, request.method)
    const raw = request.rawHeaders.flatMap((name, i, all) => (i % 2 ? [] : [[name, all[i + 1]] as Pair]))
    const real = withReal(headers.request, happened)
    differences.push(...fieldDifferences('request', real, sent, raw, transport))
  }
  if (own === null || refusal !== null) {
    differences.push(
      ...fieldDifferences('response', headers.response, refusal ? [] : answered, answer.fields, hop),
    )
  }
  return differences
}

/** Error codes with which the gateway can refuse a request before it calls an endpoint. */
const decidedBefore = new Set([
  ...['path_invalid', 'request_invalid', 'route_unknown', 'method_not_allowed', 'plan_insufficient'],
  ...['token_invalid', 'unauthenticated', 'bearer_required', 'scope_insufficient'],
])

/** Headers of the connection and the framing. `explain` does not show them. */
const transport = new Set(['connection', 'content-length'])
const hop = new Set(['connection', 'keep-alive', 'date', 'transfer-encoding', 'content-length'])

/** Headers that have a different value in each request or response. */
const made = new Set(['x-request-id', 'x-peage-assertion', 'ratelimit'])

function fieldDifferences(
  where: string,
  { set, remove }: HeaderDiff,
  sent: readonly Pair[],
  received: readonly Pair[],
  besides: ReadonlySet<string>,
): string[] {
  const differences: string[] = []
  const before = valuesOf(sent)
  const after = valuesOf(received)
  for (const [name, value] of Object.entries(set)) {
    const came = after.get(name)
    const fits = made.has(name) ? came !== undefined && came !== before.get(name) : came === value
    if (!fits) differences.push(`${where} header ${name}: explained ${value}, received ${came}`)
  }
  for (const name of remove) if (after.has(name)) differences.push(`${where} header ${name} was not removed`)
  for (const [name, value] of after) {
    if (name in set || besides.has(name)) continue
    if (before.get(name) !== value) differences.push(`${where} header ${name}: ${value} was not explained`)
  }
  const gone = [...before.keys()].filter(name => !after.has(name) && !besides.has(name))
  for (const name of gone.filter(name => !remove.includes(name))) {
    differences.push(`${where} header ${name}: its removal was not explained`)
  }
  return differences
}

/**
 * Replaces the user, API key and client address with the real values. `explain` only assumes a user, an API key and a
 * client address.
 */
function withReal({ set, remove }: HeaderDiff, { user, keyId }: Happened): HeaderDiff {
  const real: Record<string, string> = { ...set }
  if ('x-user-id' in set) real['x-user-id'] = String(user?.id)
  if ('x-user-key-id' in set) real['x-user-key-id'] = String(keyId)
  if ('x-user-email' in set) real['x-user-email'] = String(user?.email)
  const forwarded = set['x-forwarded-for']
  if (forwarded !== undefined) real['x-forwarded-for'] = forwarded.replace('192.0.2.1', '127.0.0.1')
  return { set: real, remove }
}

function valuesOf(fields: readonly Pair[]): Map<string, string> {
  const values = new Map<string, string>()
  for (const [name, value] of fields) {
    const lower = name.toLowerCase()
    const before = values.get(lower)
    values.set(lower, before === undefined ? value : `${before}, ${value}`)
  }
  return values
}

function errorOf({ body }: Answer): unknown {
  try {
    return (JSON.parse(body) as { error?: unknown }).error
  } catch {
    return `a body that is not JSON: ${body}`
  }
}
