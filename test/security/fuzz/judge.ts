// Checks the invariants I1 to I5 for one attack. This file does not use Vitest, so `npm run fuzz` can use it too.
import { canonical, identityNames } from '../identity-names.ts'
import type { Seen } from '../observed-upstream.ts'
import { type RawAnswer, value, values } from '../raw-client.ts'
import { isUnder, readings } from '../readings.ts'
import { sentences } from '../sentences.ts'
import { type Caller, guardedPrefixes, secretPrefix } from './arena.ts'
import { isForwarded, type Shot } from './shot.ts'

export interface Known {
  /** The users whose credentials the request contains. */
  readonly callers: readonly Caller[]
  /** The valid access tokens and API keys. */
  readonly secrets: ReadonlySet<string>
  readonly upstreamHost: string
}

/** Returns the violations in one request that reached the upstream. */
export function violationsOfSeen(seen: Seen, { callers, secrets, upstreamHost }: Known): string[] {
  const violations: string[] = []
  const all = (name: string) =>
    seen.fields.filter(([other]) => other.toLowerCase() === name).map(([, text]) => text)
  const identity = seen.fields.filter(([name]) => identityNames.has(canonical(name)))
  const [id] = all('x-user-id')
  const caller = callers.find(known => known.id === id)
  const own =
    caller === undefined
      ? []
      : [
          ['x-user-id', caller.id],
          ['x-user-plan', caller.plan],
        ]
  if (JSON.stringify(identity) !== JSON.stringify(own))
    violations.push(`I1 identity ${JSON.stringify(identity)}`)
  if (seen.trailers.length > 0) violations.push(`I1 trailers ${seen.trailers}`)

  const paths = readings(seen.url)
  for (const [prefix, plan] of guardedPrefixes) {
    const isThere = paths.some(path => isUnder(path, prefix))
    if (!isThere && !(seen.isSecret && prefix === secretPrefix)) continue
    if (caller === undefined || (plan !== undefined && caller.plan !== plan)) {
      violations.push(`I2 ${seen.url} as ${caller?.plan ?? 'anonymous'}`)
    }
  }
  if (isUnder(seen.url.toLowerCase().split('?', 1)[0] as string, '/public') && id !== undefined) {
    violations.push('I1 an identity on a route without authentication')
  }
  const wrong = seen.fields.filter(([name, text]) => !fieldName.test(name) || controls.test(text))
  if (wrong.length > 0) violations.push(`invalid headers ${JSON.stringify(wrong)}`)
  const leftOver = seen.fields.filter(([name]) => removed.test(canonical(name)))
  if (leftOver.length > 0) violations.push(`not removed ${JSON.stringify(leftOver)}`)
  if (all('host').join() !== upstreamHost) violations.push(`Host ${all('host')}`)
  if (all('sec-websocket-protocol').some(text => /peage\.bearer\./i.test(text)))
    violations.push('a forwarded bearer token')
  // No route of the arena forwards valid credentials. Routes without authentication may forward unknown credentials.
  const told = seen.fields.filter(
    ([name, text]) =>
      credentialNames.has(canonical(name)) && text.split(/[\s,]+/).some(part => secrets.has(part)),
  )
  if (told.length > 0) violations.push(`a forwarded credential ${JSON.stringify(told)}`)
  const framed = all('content-length').length + all('transfer-encoding').length
  if (framed > 1) violations.push('a request with two framings')
  for (const name of ['x-forwarded-for', 'x-forwarded-proto', 'via', 'x-request-id']) {
    if (all(name).length !== 1) violations.push(`${name} ${all(name).length} times`)
  }
  return violations
}

const credentialNames = new Set(['authorization', 'x-api-key'])
const fieldName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern looks for control characters
const controls = /[\0-\x08\x0a-\x1f\x7f]/
const removed =
  /^(?:proxy.*|x-original-.*|x-rewrite-.*|x-http-method(?:-override)?|x-method-override|forwarded|x-real-ip|te|trailer|keep-alive|http2-settings|expect|x-peage-error)$/

/** Returns the violations in the responses to one attack. */
export function violationsOfShot(
  { answers, unreadable, sentinel, from }: Shot,
  seen: readonly Seen[],
): string[] {
  const violations = answers.flatMap(answer => violationsOfAnswer(answer, from))
  if (unreadable !== undefined) violations.push(`unreadable bytes ${JSON.stringify(unreadable)}`)
  const forwarded = answers.filter(answer => value(answer, 'x-heard-from') !== undefined).length
  if (forwarded > seen.length)
    violations.push(
      `${forwarded} responses came from the upstream, but it received only ${seen.length} requests`,
    )
  const ends = seen.filter(({ url }) => url === sentinel)
  if (ends.length > 1) violations.push('the request after the attack arrived twice')
  if (ends.some(({ fields }) => fields.some(([name]) => name.toLowerCase() === 'x-user-id'))) {
    violations.push('I1 the request after the attack has an identity')
  }
  return violations
}

function violationsOfAnswer(answer: RawAnswer, from: string): string[] {
  const violations: string[] = []
  const said = value(answer, 'x-peage-error')
  if (answer.status >= 500) violations.push(`I4 ${answer.status} ${said}`)
  if (answer.status < 200) violations.push(`a response with the status code ${answer.status}`)
  if (values(answer, 'content-length').length > 1) violations.push('a response with two framings')
  if (isForwarded(answer)) {
    if (said !== undefined) violations.push(`I5 a response of the upstream with ${said}`)
    const isNginxOwn = value(answer, 'server')?.startsWith('nginx') && answer.status >= 400
    if (value(answer, 'x-heard-from') !== from && !isNginxOwn)
      violations.push(`a response to the client ${value(answer, 'x-heard-from')}`)
  } else if (answer.status >= 400) violations.push(...violationsOfRefusal(answer, said))
  return violations
}

/** Checks I5. The body is not checked if it is empty, as in a response to HEAD. */
function violationsOfRefusal(answer: RawAnswer, code = 'none'): string[] {
  const [status, error] = sentences[code] ?? []
  const body = answer.body.length === 0 ? { error } : parsed(answer.body.toString())
  const isOurs =
    status === answer.status &&
    body.error === error &&
    value(answer, 'cache-control') === 'no-store' &&
    value(answer, 'content-type') === 'application/json; charset=utf-8'
  return isOurs ? [] : [`I5 ${answer.status} ${code} ${answer.body.toString('utf8', 0, 200)}`]
}

function parsed(text: string): { error?: unknown } {
  try {
    return JSON.parse(text) as { error?: unknown }
  } catch {
    return { error: text }
  }
}
