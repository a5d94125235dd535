// One signing key: from a private JWK, checked, to what signs, what verifies and what may be published.
import { type CryptoKey, calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JWK } from 'jose'

export const signingAlgorithms = ['ES256', 'EdDSA', 'RS256'] as const
export type SigningAlgorithm = (typeof signingAlgorithms)[number]

export interface SigningKey {
  readonly kid: string
  /** The only algorithm that this key signs and verifies with (RFC 8725 §3.1). */
  readonly alg: SigningAlgorithm
  readonly privateKey: CryptoKey
  readonly publicKey: CryptoKey
  readonly publicJwk: PublicJwk
}

export type PublicJwk = Readonly<Record<'kty' | 'kid' | 'alg' | 'use', string>> &
  Readonly<Partial<Record<'crv' | 'x' | 'y' | 'n' | 'e', string>>>

/** A key that cannot be used. The message is a clause for the operator, with nothing of the key in it. */
export class KeyError extends Error {
  override readonly name = 'KeyError'
}

/**
 * Reads a private JWK: EC P-256, OKP Ed25519, or RSA of 2,048 bits or more (CONTRACT §3).
 * @param text the JWK as JSON
 * @param kid the name it is kept under; else the JWK's own `kid`, else its RFC 7638 thumbprint
 * @throws KeyError
 */
export async function readPrivateJwk(text: string, kid?: string): Promise<SigningKey> {
  const jwk = parseJwk(text)
  const { alg, publicMembers, privateMembers } = kindOf(jwk)
  if (typeof jwk.d !== 'string') throw new KeyError('is a public key where a private one is needed')
  if (jwk.alg !== undefined && jwk.alg !== alg) {
    throw new KeyError(`says alg ${JSON.stringify(jwk.alg)} where a key of its type signs ${alg}`)
  }
  if (jwk.use !== undefined && jwk.use !== 'sig')
    throw new KeyError('is not for signing (its use is not "sig")')

  // Only the members that are named: `key_ops`, `ext` and whatever else is in the file stay out.
  const shared = pick(jwk, publicMembers)
  const [privateKey, publicKey] = await importBoth({ ...shared, ...pick(jwk, privateMembers) }, shared, alg)
  await checkPair(privateKey, publicKey, alg)
  const name = kid ?? jwk.kid ?? (await calculateJwkThumbprint(shared as JWK))
  if (typeof name !== 'string' || name === '' || name.length > 256) {
    throw new KeyError('has a kid that is not a string of 1 to 256 characters')
  }
  const publicJwk = { ...shared, kid: name, alg, use: 'sig' } as PublicJwk
  return { kid: name, alg, privateKey, publicKey, publicJwk }
}

/** Names what a KeyError is about, before what it says. */
export async function withSubject(subject: string, reading: Promise<SigningKey>): Promise<SigningKey> {
  try {
    return await reading
  } catch (error) {
    throw error instanceof KeyError ? new KeyError(`${subject} ${error.message}`) : error
  }
}

/** Makes a key; the text is its private JWK, with its `kid`. */
export async function generatePrivateJwk(alg: SigningAlgorithm): Promise<{ kid: string; text: string }> {
  for (;;) {
    const { privateKey } = await generateKeyPair(alg, { extractable: true })
    const jwk = await exportJWK(privateKey)
    const kid = await calculateJwkThumbprint(jwk)
    // On a command line it would be taken for an option.
    if (!kid.startsWith('-')) return { kid, text: JSON.stringify({ ...jwk, kid, alg, use: 'sig' }) }
  }
}

interface Kind {
  alg: SigningAlgorithm
  publicMembers: readonly string[]
  privateMembers: readonly string[]
}

function kindOf({ kty, crv }: Record<string, unknown>): Kind {
  if (kty === 'EC' && crv === 'P-256') {
    return { alg: 'ES256', publicMembers: ['kty', 'crv', 'x', 'y'], privateMembers: ['d'] }
  }
  if (kty === 'OKP' && crv === 'Ed25519') {
    return { alg: 'EdDSA', publicMembers: ['kty', 'crv', 'x'], privateMembers: ['d'] }
  }
  if (kty === 'RSA') {
    const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi']
    return { alg: 'RS256', publicMembers: ['kty', 'n', 'e'], privateMembers }
  }
  throw new KeyError('is of a type that does not sign here (EC P-256, OKP Ed25519 and RSA do)')
}

function parseJwk(text: string): Record<string, unknown> {
  let jwk: unknown
  try {
    jwk = JSON.parse(text)
  } catch {
    // The parser's message quotes the text, and the text is a secret.
    throw new KeyError('is not JSON')
  }
  if (typeof jwk !== 'object' || jwk === null || Array.isArray(jwk)) {
    throw new KeyError('is not a JWK (a JSON object)')
  }
  return jwk as Record<string, unknown>
}

function pick(jwk: Record<string, unknown>, members: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(members.filter(name => Object.hasOwn(jwk, name)).map(name => [name, jwk[name]]))
}

async function importBoth(privateJwk: object, publicJwk: object, alg: SigningAlgorithm) {
  try {
    return await Promise.all([importKey(privateJwk, alg), importKey(publicJwk, alg)])
  } catch {
    throw new KeyError('cannot be read as a private key: a member is missing or wrong')
  }
}

async function importKey(jwk: object, alg: SigningAlgorithm): Promise<CryptoKey> {
  return (await importJWK(jwk as JWK, alg)) as CryptoKey
}

/** A key whose halves do not fit would sign tokens that nobody can verify. */
async function checkPair(privateKey: CryptoKey, publicKey: CryptoKey, alg: SigningAlgorithm): Promise<void> {
  const bits = (privateKey.algorithm as { modulusLength?: number }).modulusLength
  if (bits !== undefined && bits < 2048) throw new KeyError(`is too weak: ${bits} bits where 2048 are needed`)
  // Above it a token would not fit into the 4 KiB that one may have.
  if (bits !== undefined && bits > 8192) throw new KeyError(`is too large: ${bits} bits where 8192 may be`)
  const method = alg === 'ES256' ? { name: 'ECDSA', hash: 'SHA-256' } : privateKey.algorithm.name
  const probe = Buffer.from('probe')
  const signature = await crypto.subtle.sign(method, privateKey, probe)
  if (!(await crypto.subtle.verify(method, publicKey, signature, probe))) {
    throw new KeyError('has a public and a private half that do not belong together')
  }
}
