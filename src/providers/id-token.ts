// Verifies ID tokens (OpenID Connect Core 1.0, section 3.1.3.7), with stricter rules than the specification.
import { createHash } from 'node:crypto'
import {
  decodeProtectedHeader,
  errors,
  type JWTPayload,
  jwtVerify,
  type ProtectedHeaderParameters,
} from 'jose'
import type { Clock } from '../clock.ts'
import type { ProviderConfig } from '../config/sections/schema.ts'
import { sha256Hex } from '../identity/token-hash.ts'
import type { UsableIdToken } from '../users/external-person.ts'
import type { Keys } from './key-set.ts'
import { ProviderFailure } from './provider-failure.ts'

export type IdTokenClaims = JWTPayload & { readonly sub: string }

export interface CheckedIdToken {
  readonly claims: IdTokenClaims
  readonly idToken: UsableIdToken
}

/** Returns whether `nonce`, a claim of the ID token, has the expected value. */
export type NonceCheck = (nonce: unknown) => boolean

/** The maximum difference between the clocks of the provider and the gateway, in seconds. */
export const toleranceSeconds = 5
const maxAgeSeconds = 10 * 60
/**
 * The maximum difference between the clocks of two replicas, in seconds. A used token is recorded for this much longer.
 * So a replica whose clock is slow also refuses a second use.
 */
const replicaSeconds = 60

/**
 * Returns the nonce check for an ID token that an app sends. The app gives its nonce to the gateway, and only the
 * SHA-256 of the nonce (in hex or base64url) to the provider. So the ID token contains the SHA-256.
 * @param nonce the nonce that the app sends to the gateway; undefined if there is none
 */
export function nonceCheckForApp(nonce: string | undefined): NonceCheck {
  if (nonce === undefined) return claim => claim === undefined
  const digest = createHash('sha256').update(nonce).digest()
  return claim => claim === digest.toString('hex') || claim === digest.toString('base64url')
}

/** @throws ProviderFailure `id_token_invalid`, `provider_unavailable` */
export async function checkIdToken(
  idToken: string,
  isNonce: NonceCheck,
  { config, keys, clock }: { config: ProviderConfig; keys: Keys; clock: Clock },
): Promise<CheckedIdToken> {
  const { kid } = readHeader(idToken)
  const { find, algorithms } = await keys.for(kid)
  const options = {
    algorithms: [...algorithms],
    issuer: config.issuer,
    requiredClaims: ['exp'],
    maxTokenAge: maxAgeSeconds,
    clockTolerance: toleranceSeconds,
    currentDate: new Date(clock.now()),
  }
  const { payload, protectedHeader } = await jwtVerify(idToken, find, options).catch(error => {
    // Only the messages of jose are known to contain no part of the token.
    throw invalid(error instanceof errors.JOSEError ? error.message : 'the key or the token is malformed')
  })
  const problem = problemOf(payload, protectedHeader, config) ?? problemOfNonce(payload, isNonce)
  if (problem !== undefined) throw invalid(problem)
  return {
    claims: payload as IdTokenClaims,
    idToken: {
      hash: sha256Hex(idToken.slice(0, idToken.lastIndexOf('.'))),
      tooOldAt: new Date((Number(payload.iat) + maxAgeSeconds + toleranceSeconds + replicaSeconds) * 1_000),
    },
  }
}

function readHeader(idToken: string): ProtectedHeaderParameters {
  try {
    return decodeProtectedHeader(idToken)
  } catch {
    throw invalid('it is not a JWT')
  }
}

function invalid(problem: string): ProviderFailure {
  return new ProviderFailure('id_token_invalid', 'ID token', [problem])
}

/**
 * The claims of access tokens (RFC 9068, Microsoft, Okta) and of logout tokens. These tokens may have the same signing
 * keys and audience as ID tokens, so these claims distinguish them.
 */
const foreignClaims = ['scp', 'scope', 'events']

const maxSubLength = 255

function problemOf(
  { sub, aud, azp, typ, ...claims }: JWTPayload,
  header: { readonly typ?: unknown },
  { client_id, audiences }: ProviderConfig,
): string | undefined {
  const clients: readonly unknown[] = [client_id, ...audiences]
  const audience: readonly unknown[] = [aud ?? []].flat()
  if (audience.length === 0 || !audience.every(client => clients.includes(client)))
    return 'aud is missing or contains a client that is not configured'
  if (azp !== undefined && !clients.includes(azp)) return 'azp is a client that is not configured'
  if (header.typ !== undefined && header.typ !== 'JWT') return 'the header has a typ other than JWT'
  if (typ !== undefined && typ !== 'ID') return 'the claim typ is not ID'
  const foreign = foreignClaims.find(name => name in claims)
  if (foreign !== undefined) return `it has the claim ${foreign}, so it is no ID token`
  return isStorableSub(sub) ? undefined : 'sub is not a text of 1 to 255 characters'
}

/**
 * Returns whether Postgres can store the subject unchanged. If a changed subject were stored, it could equal the
 * subject of another user.
 */
function isStorableSub(sub: unknown): boolean {
  if (typeof sub !== 'string' || sub === '' || sub.length > maxSubLength) return false
  return sub.isWellFormed() && !/\p{Cc}/u.test(sub)
}

function problemOfNonce({ nonce }: JWTPayload, isNonce: NonceCheck): string | undefined {
  return isNonce(nonce) ? undefined : 'nonce does not have the expected value'
}
