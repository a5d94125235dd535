// Validates a private JWK. Derives the signing key, the verification key and the public JWK from it.
import { type CryptoKey, calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JWK } from 'jose'
import { type PrivateJwk, readJwk } from '../../config/formats/private-jwk.ts'

export type SigningAlgorithm = PrivateJwk['alg']

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

/**
 * The error if a signing key cannot be used. Its message is for the operator and contains no part of the key. If the
 * message has no subject, `withSubject` adds one.
 */
export class KeyError extends Error {
  override readonly name = 'KeyError'
}

/**
 * Reads a private JWK: EC P-256, OKP Ed25519, or RSA of 2,048 to 8,192 bits.
 * @param kid the name under which the key is stored; by default the JWK's own `kid`, or its RFC 7638 thumbprint
 * @throws KeyError
 */
export async function readPrivateJwk(text: string, kid?: string): Promise<SigningKey> {
  const read = readJwk(text, kid)
  if ('error' in read) throw new KeyError(read.error)
  const { alg, publicMembers, privateMembers } = read
  const [privateKey, publicKey] = await Promise.all([
    importKey({ ...publicMembers, ...privateMembers }, alg),
    importKey(publicMembers, alg),
  ])
  const publicJwk = { ...publicMembers, kid: read.kid, alg, use: 'sig' } as PublicJwk
  return { kid: read.kid, alg, privateKey, publicKey, publicJwk }
}

async function importKey(jwk: object, alg: SigningAlgorithm): Promise<CryptoKey> {
  try {
    return (await importJWK(jwk as JWK, alg)) as CryptoKey
  } catch {
    throw new KeyError('is not a valid private key; a member is missing or wrong')
  }
}

export async function withSubject(subject: string, reading: Promise<SigningKey>): Promise<SigningKey> {
  try {
    return await reading
  } catch (error) {
    throw error instanceof KeyError ? new KeyError(`${subject} ${error.message}`) : error
  }
}

/** Creates a key. `text` is its private JWK, including its `kid`. */
export async function generatePrivateJwk(alg: SigningAlgorithm): Promise<{ kid: string; text: string }> {
  for (;;) {
    const { privateKey } = await generateKeyPair(alg, { extractable: true })
    const jwk = await exportJWK(privateKey)
    const kid = await calculateJwkThumbprint(jwk)
    // A `kid` with a leading hyphen would look like an option on a command line.
    if (!kid.startsWith('-')) return { kid, text: JSON.stringify({ ...jwk, kid, alg, use: 'sig' }) }
  }
}
