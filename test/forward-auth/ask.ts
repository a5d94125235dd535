// Builds questions as proxies do (docs/forward-auth.md), and sends them to a gateway byte for byte. With a question, a
// proxy asks whether it may forward the request of a client.
import { type RawAnswer, RawConnection, requestBytes, value } from '../security/raw-client.ts'

export const path = '/.peage/authorize'

/** A request of a client, about which a proxy asks. */
export interface ClientRequest {
  readonly method?: string
  readonly target: string
  readonly host?: string
  /** Further header lines of the client. */
  readonly lines?: readonly string[]
}

/** Returns the question of a proxy that describes the request in `X-Forwarded-*` (nginx, Traefik, Caddy). */
export function inFields(
  { method = 'GET', target, host = 'gw.test', lines = [] }: ClientRequest,
  question = path,
): Buffer {
  return requestBytes('GET', question, [
    'Host: peage.internal',
    `X-Forwarded-Method: ${method}`,
    `X-Forwarded-Uri: ${target}`,
    `X-Forwarded-Host: ${host}`,
    ...lines,
  ])
}

/** Returns the question of a proxy that appends the target to the path (Envoy). */
export function inPath({ method = 'GET', target, host = 'gw.test', lines = [] }: ClientRequest): Buffer {
  return requestBytes(method, path + target, [`Host: ${host}`, ...lines])
}

export function direct({ method = 'GET', target, host = 'gw.test', lines = [] }: ClientRequest): Buffer {
  return requestBytes(method, target, [`Host: ${host}`, ...lines])
}

/** @param from the loopback address from which the question is sent */
export async function send(base: string, bytes: Buffer, method = 'GET', from?: string): Promise<RawAnswer> {
  const connection = new RawConnection(base, from)
  try {
    connection.write(bytes)
    const answer = await connection.answer(method)
    if (answer === undefined) throw new Error('no response')
    return answer
  } finally {
    connection.close()
  }
}

export const identityFields = [
  'x-user-id',
  'x-user-plan',
  'x-user-email',
  'x-user-key-id',
  'x-user-scopes',
  'x-peage-assertion',
]

/** Returns the identity headers of a response. The value of a missing header is undefined. */
export function identityOf(answer: RawAnswer): Record<string, string | undefined> {
  return Object.fromEntries(identityFields.map(name => [name, value(answer, name)]))
}

/** The identity headers of the response if the request has no user: all are present and empty. */
export const nobody = Object.fromEntries(identityFields.map(name => [name, '']))

export function codeOf(answer: RawAnswer): string {
  return `${answer.status} ${value(answer, 'x-peage-error') ?? ''}`.trim()
}
