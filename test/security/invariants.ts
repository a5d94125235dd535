// The corpus's invariants I1–I5, held over whatever was sent: what upstreams saw, what clients heard.
import { expect } from 'vitest'
import type { TestGateway } from '../support/gateway.ts'
import type { ObservedUpstream, Seen } from './observed-upstream.ts'
import { type RawAnswer, value } from './raw-client.ts'

/** CONTRACT §10, written down once more: the tests must not believe the code about its own sentences. */
const sentences: Record<string, [status: number, error: string]> = {
  email_invalid: [400, 'Email invalide'],
  password_too_short: [400, 'Mot de passe trop court (min 8 caractères)'],
  password_too_long: [400, 'Mot de passe trop long (max 1024 caractères)'],
  email_taken: [409, 'Email déjà enregistré'],
  internal: [500, 'Erreur interne'],
  credentials_missing: [400, 'Email et mot de passe requis'],
  credentials_invalid: [401, 'Identifiants invalides'],
  refresh_token_missing: [400, 'refresh_token manquant'],
  refresh_token_invalid: [401, 'Refresh token invalide ou expiré'],
  refresh_token_inactive: [401, 'Refresh token invalide, révoqué ou expiré'],
  user_not_found: [401, 'Utilisateur introuvable'],
  token_invalid: [401, 'Token invalide ou expiré'],
  key_check_failed: [401, 'Token invalide ou expiré'],
  unauthenticated: [401, 'Non authentifié'],
  plan_insufficient: [403, 'Plan insuffisant'],
  daily_limit_reached: [429, 'Limite quotidienne atteinte (plan free: 1 course/jour)'],
  rate_limited: [429, 'Trop de requêtes'],
  credentials_ambiguous: [400, "En-têtes d'authentification ambigus"],
  path_invalid: [400, 'Chemin invalide'],
  request_invalid: [400, 'Requête invalide'],
  body_too_large: [413, 'Requête trop volumineuse'],
  headers_too_large: [431, 'En-têtes trop volumineux'],
  route_unknown: [404, 'Route inconnue'],
  method_not_allowed: [405, 'Méthode non autorisée'],
  service_unavailable: [503, 'Service indisponible'],
  upstream_unreachable: [502, 'Service amont injoignable'],
  upstream_timeout: [504, 'Délai du service amont dépassé'],
  upstream_unavailable: [503, 'Service amont indisponible'],
}

/** I5: a refusal of the gateway's own is French JSON with its code, not to be stored. Returns the code. */
export function expectRefusal(answer: RawAnswer | undefined, code?: string, method = 'GET'): string {
  if (answer === undefined) throw new Error('no answer')
  const said = value(answer, 'x-peage-error') ?? `an answer ${answer.status} without X-Peage-Error`
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

/** A malformed request's refusal (CONTRACT §4): 400 or 431, after which the connection is closed. */
export const closing = new Set(['request_invalid', 'headers_too_large'])

export interface Watched {
  gateway: TestGateway
  upstream: ObservedUpstream
  /** The plan of every user that may be named to the upstream, by id. */
  plans: Map<string, string>
  /** How many faults (500 `internal`) were expected so far. */
  faults: number
}

/**
 * I1–I3 for what the upstream saw since it was last forgotten, I4 and I5 for what was heard. `guarded` is the
 * prefix that nobody may reach without a credential.
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
    seen => !isAuthenticated(seen) && isUnder(worstCase(seen.url), guarded),
  )
  expect(trespassing.map(seen => seen.url)).toEqual([])
  for (const answer of answers) {
    if (!mayFail) expect(answer.status).toBeLessThan(500)
    if (answer.status >= 400 && value(answer, 'x-upstream') === undefined)
      expectRefusal(answer, undefined, method)
    if (value(answer, 'x-upstream') !== undefined) expect(value(answer, 'x-peage-error')).toBeUndefined()
  }
  // I3: whatever the upstream took for a request, the gateway forwarded as one.
  await expect.poll(() => count(gateway.log, '"decision":"forwarded"')).toBeGreaterThanOrEqual(upstream.count)
  // I4: no fault behind a refusal that looks expected.
  if (mayFail) watched.faults += 1
  expect(count(gateway.log, '"decision":"internal"')).toBeLessThanOrEqual(watched.faults)
}

const count = (log: readonly string[], text: string) => log.filter(line => line.includes(text)).length

/** I1: no field, and no trailer, that any upstream could take for an identity, but the pair that the gateway set. */
function expectOwnIdentityOnly(seen: Seen, plans: Map<string, string>): void {
  const identity = seen.fields.filter(([name]) => identityNames.has(canonical(name)))
  const [id] = identity.filter(([name]) => name === 'x-user-id').map(([, text]) => text)
  expect(identity).toEqual(
    id === undefined
      ? []
      : [
          ['x-user-id', id],
          ['x-user-plan', plans.get(id) ?? 'a plan of nobody we know'],
        ],
  )
  expect(seen.trailers).toEqual([])
}

const identityNames = new Set(['x-user-id', 'x-user-plan', 'x-user-email', 'x-peage-assertion'])

function canonical(name: string): string {
  return name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
}

const isAuthenticated = (seen: Seen) => seen.fields.some(([name]) => name === 'x-user-id')

/** Where the laxest upstream would take a request target: decoded three times, lower-cased, parameters cut, resolved. */
export function worstCase(target: string): string {
  let path = target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '').replace(/[?#].*$/s, '')
  for (let i = 0; i < 3; i++) {
    path = path.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  }
  const resolved: string[] = []
  for (const part of path
    .toLowerCase()
    .replace(/[\0?#].*$/s, '')
    .split(/[/\\]/)) {
    const segment = part.replace(/;.*$/s, '').trim()
    if (segment === '..') resolved.pop()
    else if (segment !== '' && segment !== '.') resolved.push(segment.replace(/[. ]+$/, ''))
  }
  return `/${resolved.join('/')}`
}

export function isUnder(path: string, prefix: string): boolean {
  return path === prefix || path.startsWith(`${prefix}/`)
}
