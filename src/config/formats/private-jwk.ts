// Parses a private JWK that can sign tokens. Error messages never contain parts of the key.
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  type JsonWebKey,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto'

export interface PrivateJwk {
  readonly kid: string
  /** The only algorithm that this key signs and verifies with (RFC 8725 §3.1). */
  readonly alg: 'ES256' | 'EdDSA' | 'RS256'
  /** The members in base64url without padding (RFC 7515 §2). Coordinates have their full length (RFC 7518 §6.2.1.2). */
  readonly publicMembers: Readonly<Record<string, string>>
  readonly privateMembers: Readonly<Record<string, string>>
}

/**
 * Reads a private JWK: EC P-256, OKP Ed25519, or RSA of 2,048 to 8,192 bits.
 * @param kid the name of the key; by default the JWK's own `kid`, or its RFC 7638 thumbprint
 * @returns the key, or an error text that continues a sentence that begins with "the key" or "the file"
 */
export function readJwk(text: string, kid?: string): PrivateJwk | { error: string } {
  const jwk = parseJwk(text)
  if (typeof jwk === 'string') return { error: jwk }
  const kind = kindOf(jwk)
  if (kind === undefined) {
    return { error: 'has an unsupported key type; use EC P-256, OKP Ed25519 or RSA' }
  }
  const error = errorOfPurpose(jwk, kind.alg)
  if (error !== undefined) return { error }
  const pair = readPair(pick(jwk, kind.publicMembers), pick(jwk, kind.privateMembers))
  if (typeof pair === 'string') return { error: pair }
  // The members are exported by Node instead of copied from the file. In a file, Node accepts padding and missing
  // zeros. Strict verifiers would refuse both.
  const publicMembers = pick(pair.publicKey.export({ format: 'jwk' }), kind.publicMembers)
  const privateMembers = pick(pair.privateKey.export({ format: 'jwk' }), kind.privateMembers)
  const name = kid ?? jwk.kid ?? thumbprintOf(publicMembers)
  if (typeof name !== 'string' || name === '' || name.length > 256) {
    return { error: 'has a kid that is not a string of 1 to 256 characters' }
  }
  return { kid: name, alg: kind.alg, publicMembers, privateMembers }
}

interface Kind {
  alg: PrivateJwk['alg']
  publicMembers: readonly string[]
  privateMembers: readonly string[]
}

function kindOf({ kty, crv }: Record<string, unknown>): Kind | undefined {
  if (kty === 'EC' && crv === 'P-256') {
    return { alg: 'ES256', publicMembers: ['kty', 'crv', 'x', 'y'], privateMembers: ['d'] }
  }
  if (kty === 'OKP' && crv === 'Ed25519') {
    return { alg: 'EdDSA', publicMembers: ['kty', 'crv', 'x'], privateMembers: ['d'] }
  }
  if (kty !== 'RSA') return undefined
  const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi']
  return { alg: 'RS256', publicMembers: ['kty', 'n', 'e'], privateMembers }
}

function parseJwk(text: string): Record<string, unknown> | string {
  let jwk: unknown
  try {
    jwk = JSON.parse(text)
  } catch {
    // The parser's message is not used, because it quotes the text, which is a secret.
    return 'is not JSON'
  }
  if (typeof jwk !== 'object' || jwk === null || Array.isArray(jwk)) return 'is not a JWK (a JSON object)'
  return jwk as Record<string, unknown>
}

/** Checks the declared purpose of the key (RFC 7517 §4.2 to 4.4). */
function errorOfPurpose(jwk: Record<string, unknown>, alg: string): string | undefined {
  if (typeof jwk.d !== 'string') return 'is a public key; a private key is required'
  if (jwk.alg !== undefined && jwk.alg !== alg) {
    return `has alg ${JSON.stringify(jwk.alg)}, but a key of this type must have ${alg}`
  }
  if (jwk.use !== undefined && jwk.use !== 'sig') return 'is not for signing (its member use is not "sig")'
  if (jwk.key_ops !== undefined && !(Array.isArray(jwk.key_ops) && jwk.key_ops.includes('sign'))) {
    return 'is not for signing (its member key_ops does not contain "sign")'
  }
  return undefined
}

function readPair(
  publicMembers: JsonWebKey,
  privateMembers: JsonWebKey,
): { publicKey: KeyObject; privateKey: KeyObject } | string {
  let privateKey: KeyObject
  let publicKey: KeyObject
  try {
    privateKey = createPrivateKey({ key: { ...publicMembers, ...privateMembers }, format: 'jwk' })
    publicKey = createPublicKey({ key: publicMembers, format: 'jwk' })
  } catch {
    return 'is not a valid private key; a member is missing or wrong'
  }
  const error = errorOfStrength(publicKey) ?? (belong(privateKey, publicKey) ? undefined : unequal)
  return error ?? { publicKey, privateKey }
}

/** Checks the strength of RSA keys. All other keys have a fixed strength. */
function errorOfStrength({ asymmetricKeyDetails }: KeyObject): string | undefined {
  const { modulusLength: bits, publicExponent: exponent } = asymmetricKeyDetails ?? {}
  if (bits === undefined || exponent === undefined) return undefined
  if (bits < 2048) return `is too weak; it has ${bits} bits, but at least 2048 are required`
  // A token that is signed with a larger key would exceed the limit of 4 KiB for tokens.
  if (bits > 8192) return `is too large; it has ${bits} bits, but at most 8192 are allowed`
  // With an exponent of 1, anyone can forge a signature, because the signature equals the padded hash. Small exponents
  // allow forgeries if a verifier checks the padding carelessly (CVE-2006-4339). Even exponents have no inverse (FIPS
  // 186-5 §A.1.1).
  if (exponent < 65_537n || exponent % 2n === 0n) {
    return 'has an invalid public exponent (e); it must be odd and at least 65537'
  }
  return undefined
}

const unequal = 'has a public and a private part that do not match'

/** Whether the two keys belong together. If not, verifiers would reject every token that the private key signs. */
function belong(privateKey: KeyObject, publicKey: KeyObject): boolean {
  const hash = privateKey.asymmetricKeyType === 'ed25519' ? null : 'sha256'
  const probe = Buffer.from('probe')
  try {
    return verify(hash, probe, publicKey, sign(hash, probe, privateKey))
  } catch {
    return false
  }
}

/** The thumbprint covers the members that every key of the type has, sorted by name (RFC 7638 §3). */
function thumbprintOf(publicMembers: Readonly<Record<string, string>>): string {
  const members = Object.entries(publicMembers).sort(([a], [b]) => (a < b ? -1 : 1))
  return createHash('sha256')
    .update(JSON.stringify(Object.fromEntries(members)))
    .digest('base64url')
}

/** Returns the members with these names. All members must be strings, so any other member counts as missing. */
function pick(jwk: object, members: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    Object.entries(jwk).filter(([name, value]) => members.includes(name) && typeof value === 'string'),
  )
}
