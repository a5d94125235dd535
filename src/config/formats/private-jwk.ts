// Whether a text is a private JWK that tokens can be signed with; what is said of it has nothing of the key in it.
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  type JsonWebKey,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto'

/** What a JWK says, checked: only the members that are named, `ext` and whatever else is in the file stay out. */
export interface PrivateJwk {
  readonly kid: string
  /** The only algorithm that this key signs and verifies with (RFC 8725 §3.1). */
  readonly alg: 'ES256' | 'EdDSA' | 'RS256'
  readonly publicMembers: Readonly<Record<string, string>>
  readonly privateMembers: Readonly<Record<string, string>>
}

/**
 * Reads a private JWK: EC P-256, OKP Ed25519, or RSA of 2,048 to 8,192 bits (CONTRACT §3).
 * @param text the JWK as JSON
 * @param kid the name it is kept under; else the JWK's own `kid`, else its RFC 7638 thumbprint
 * @returns the key, or what is wrong with it: a clause that follows the name of the key or of its file
 */
export function readJwk(text: string, kid?: string): PrivateJwk | { fault: string } {
  const jwk = parseJwk(text)
  if (typeof jwk === 'string') return { fault: jwk }
  const kind = kindOf(jwk)
  if (kind === undefined) {
    return { fault: 'is of a type that does not sign here (EC P-256, OKP Ed25519 and RSA do)' }
  }
  const publicMembers = pick(jwk, kind.publicMembers)
  const privateMembers = pick(jwk, kind.privateMembers)
  const fault =
    faultOfPurpose(jwk, kind.alg) ?? faultOfPair(publicMembers, { ...publicMembers, ...privateMembers })
  if (fault !== undefined) return { fault }
  const name = kid ?? jwk.kid ?? thumbprintOf(publicMembers)
  if (typeof name !== 'string' || name === '' || name.length > 256) {
    return { fault: 'has a kid that is not a string of 1 to 256 characters' }
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

/** @returns the object, or what the text is not */
function parseJwk(text: string): Record<string, unknown> | string {
  let jwk: unknown
  try {
    jwk = JSON.parse(text)
  } catch {
    // The parser's message quotes the text, and the text is a secret.
    return 'is not JSON'
  }
  if (typeof jwk !== 'object' || jwk === null || Array.isArray(jwk)) return 'is not a JWK (a JSON object)'
  return jwk as Record<string, unknown>
}

/** What the key itself says that it is for (RFC 7517 §4.2 to §4.4). */
function faultOfPurpose(jwk: Record<string, unknown>, alg: string): string | undefined {
  if (typeof jwk.d !== 'string') return 'is a public key where a private one is needed'
  if (jwk.alg !== undefined && jwk.alg !== alg) {
    return `says alg ${JSON.stringify(jwk.alg)} where a key of its type signs ${alg}`
  }
  if (jwk.use !== undefined && jwk.use !== 'sig') return 'is not for signing (its use is not "sig")'
  if (jwk.key_ops !== undefined && !(Array.isArray(jwk.key_ops) && jwk.key_ops.includes('sign'))) {
    return 'is not for signing (its key_ops do not have "sign")'
  }
  return undefined
}

function faultOfPair(publicJwk: JsonWebKey, privateJwk: JsonWebKey): string | undefined {
  let privateKey: KeyObject
  let publicKey: KeyObject
  try {
    privateKey = createPrivateKey({ key: privateJwk, format: 'jwk' })
    publicKey = createPublicKey({ key: publicJwk, format: 'jwk' })
  } catch {
    return 'cannot be read as a private key: a member is missing or wrong'
  }
  return faultOfStrength(publicKey) ?? (belong(privateKey, publicKey) ? undefined : unequal)
}

/** Of RSA; the other types have one strength. */
function faultOfStrength({ asymmetricKeyDetails }: KeyObject): string | undefined {
  const { modulusLength: bits, publicExponent: exponent } = asymmetricKeyDetails ?? {}
  if (bits === undefined || exponent === undefined) return undefined
  if (bits < 2048) return `is too weak: ${bits} bits where 2048 are needed`
  // Above it a token would not fit into the 4 KiB that one may have.
  if (bits > 8192) return `is too large: ${bits} bits where 8192 may be`
  // With 1 anybody makes signatures: one is the padded hash itself. Small ones forge where a verifier is careless with
  // the padding (CVE-2006-4339), and even ones have no inverse (FIPS 186-5 §A.1.1).
  if (exponent < 65_537n || exponent % 2n === 0n) {
    return 'has a public exponent (e) that is not an odd number of 65537 or more'
  }
  return undefined
}

const unequal = 'has a public and a private half that do not belong together'

/** A key whose halves do not fit would sign tokens that nobody can verify. */
function belong(privateKey: KeyObject, publicKey: KeyObject): boolean {
  const hash = privateKey.asymmetricKeyType === 'ed25519' ? null : 'sha256'
  const probe = Buffer.from('probe')
  try {
    return verify(hash, probe, publicKey, sign(hash, probe, privateKey))
  } catch {
    return false
  }
}

/** RFC 7638 §3: the members that every key of the type has, in the order of their names. */
function thumbprintOf(publicMembers: Readonly<Record<string, string>>): string {
  const members = Object.entries(publicMembers).sort(([a], [b]) => (a < b ? -1 : 1))
  return createHash('sha256')
    .update(JSON.stringify(Object.fromEntries(members)))
    .digest('base64url')
}

/** What is no text is wrong in every member of a key: left out, it is missed. */
function pick(jwk: Record<string, unknown>, members: readonly string[]): Record<string, string> {
  const held = members.map(name => [name, Object.hasOwn(jwk, name) ? jwk[name] : undefined] as const)
  return Object.fromEntries(held.filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
}
