// Checks the invariants I1 to I5 of the corpus, both in the requests that the upstream received and in the responses.
import { expect } from 'vitest'
import type { TestGateway } from '../support/gateway.ts'
import { canonical, identityNames } from './identity-names.ts'
import type { ObservedUpstream, Seen } from './observed-upstream.ts'
import { type RawAnswer, value } from './raw-client.ts'
import { isUnder, readings } from './readings.ts'
import { sentences } from './sentences.ts'

/**
 * Checks I5: the body of a refusal is JSON with a French text, and its headers contain the error code and `no-store`.
 * @returns the error code
 */
export function expectRefusal(answer: RawAnswer | undefined, code?: string, method = 'GET'): string {
  if (answer === undefined) throw new Error('no response')
  const said = value(answer, 'x-peage-error') ?? `a ${answer.status} response without X-Peage-Error`
  const [status, error] = sentences[said] ?? [0, said]
  const body = method === 'HEAD' ? error : (JSON.parse(answer.body.toString()) as { error: unknown }).error
  expect({
    code: code ?? said,
    status: answer.status,
    error: body,
    cache: value(answer, 'cache-control'),
    type: value(answer, 'content-type'),
    complete: answer.complete,
  }).toEqual({
    code: said,
    status,
    error,
    cache: 'no-store',
    type: 'application/json; charset=utf-8',
    complete: true,
  })
  return said
}

/** The error codes of refusals for malformed requests. After such a refusal, the gateway closes the connection. */
export const closing = new Set(['request_invalid', 'headers_too_large'])

export interface Watched {
  gateway: TestGateway
  upstream: ObservedUpstream
  /** The plan of each user whose identity may reach the upstream, by user ID. */
  plans: Map<string, string>
  /** The number of expected 500 responses (`internal`) so far. */
  expectedFailures: number
}

/**
 * Checks I1 to I3 for the requests in `upstream.seen`, and I4 and I5 for the responses.
 * @param guarded the path prefix that requires a credential
 */
export async function expectInvariants(
  watched: Watched,
  answers: readonly RawAnswer[],
  guarded: string,
  { mayFail = false, method = 'GET' } = {},
): Promise<void> {
  const { gateway, upstream, plans } = watched
  for (const seen of upstream.seen) expectOwnIdentityOnly(seen, plans)
  const trespassing = upstream.seen.filter(
    seen =>
      !isAuthenticated(seen) && (seen.isSecret || readings(seen.url).some(path => isUnder(path, guarded))),
  )
  expect(trespassing.map(seen => seen.url)).toEqual([])
  for (const answer of answers) {
    if (!mayFail) expect(answer.status).toBeLessThan(500)
    if (answer.status >= 400 && value(answer, 'x-upstream') === undefined)
      expectRefusal(answer, undefined, method)
    if (value(answer, 'x-upstream') !== undefined) expect(value(answer, 'x-peage-error')).toBeUndefined()
  }
  // I3: the upstream received only requests that the gateway forwarded.
  await expect.poll(() => count(gateway.log, '"decision":"forwarded"')).toBeGreaterThanOrEqual(upstream.count)
  // I4: the log contains no internal error, except the expected ones.
  if (mayFail) watched.expectedFailures += 1
  expect(count(gateway.log, '"decision":"internal"')).toBeLessThanOrEqual(watched.expectedFailures)
}

const count = (log: readonly string[], text: string) => log.filter(line => line.includes(text)).length

/** Checks I1: the request has no identity headers except the two that the gateway sets, and it has no trailers. */
function expectOwnIdentityOnly(seen: Seen, plans: Map<string, string>): void {
  const identity = seen.fields.filter(([name]) => identityNames.has(canonical(name)))
  const [id] = identity.filter(([name]) => name === 'x-user-id').map(([, text]) => text)
  expect(identity).toEqual(
    id === undefined
      ? []
      : [
          ['x-user-id', id],
          ['x-user-plan', plans.get(id) ?? 'a plan of an unknown user'],
        ],
  )
  expect(seen.trailers).toEqual([])
}

const isAuthenticated = (seen: Seen) => seen.fields.some(([name]) => name === 'x-user-id')
