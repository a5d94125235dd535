// The certificate and key files that the configurations in the golden files refer to.
import { generateKeyPairSync } from 'node:crypto'
import { first, second } from '../support/certificates.ts'

const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const ecJwk = ec.privateKey.export({ format: 'jwk' })
const edJwk = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' })
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const rsaJwk = rsa.privateKey.export({ format: 'jwk' })
const rsaOf = (modulusLength: number, publicExponent: number) =>
  generateKeyPairSync('rsa', { modulusLength, publicExponent }).privateKey.export({ format: 'jwk' })

const jwks: Readonly<Record<string, object>> = {
  ec: { ...ecJwk, kid: 'one' },
  'ed-same-kid': { ...edJwk, kid: 'one' },
  list: [ecJwk],
  set: { keys: [ecJwk] },
  oct: { kty: 'oct', k: 'c2VjcmV0' },
  p384: generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey.export({ format: 'jwk' }),
  'ec-public': ec.publicKey.export({ format: 'jwk' }),
  'rsa-public': rsa.publicKey.export({ format: 'jwk' }),
  'rsa-1024-bits': rsaOf(1024, 65_537),
  'ec-alg': { ...ecJwk, alg: 'HS256' },
  'rsa-alg': { ...rsaJwk, alg: 'PS256' },
  'ec-use': { ...ecJwk, use: 'enc' },
  'ec-key-ops': { ...ecJwk, key_ops: ['verify'] },
  'ed-key-ops': { ...edJwk, key_ops: [] },
  'rsa-key-ops': { ...rsaJwk, key_ops: 'sign' },
  'rsa-e-of-1': { ...rsaJwk, e: 'AQ', d: 'AQ', dp: 'AQ', dq: 'AQ' },
  'rsa-e-of-3': rsaOf(2048, 3),
  'rsa-e-of-3-written': { ...rsaJwk, e: 'Aw' },
  'rsa-even-e': { ...rsaJwk, e: 'AQAA' },
  'ec-without-x': { ...ecJwk, x: undefined },
  'kid-number': { ...ecJwk, kid: 7 },
  'kid-empty': { ...ecJwk, kid: '' },
  'kid-long': { ...ecJwk, kid: 'x'.repeat(257) },
}

export const files: Readonly<Record<string, string>> = {
  'first.crt': first.cert,
  'first.key': first.key,
  'second.key': second.key,
  'both.crt': `# Two authorities.\n${first.cert}\n${second.cert}`,
  'broken.crt': '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
  'encrypted.key': '-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n',
  'text.pem': 'no certificate',
  'cut.jwk': '{"kty"',
  'text.jwk': '"x"',
  'pem.jwk': ec.privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
  ...Object.fromEntries(Object.entries(jwks).map(([name, jwk]) => [`${name}.jwk`, JSON.stringify(jwk)])),
}
