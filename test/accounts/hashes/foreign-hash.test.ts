// Tests which password hashes of other systems are accepted, and which passwords match them.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readForeignHash } from '../../../src/accounts/hashes/foreign-hash.ts'
import { createPasswords } from '../../../src/accounts/password.ts'
import { foreignVectors } from '../../support/foreign-hashes.ts'
import { runs } from '../../support/property-runs.ts'

const passwords = createPasswords({ concurrency: 2, queue: 64, wait: 5_000 })
const accepts = (text: string) => 'hash' in readForeignHash(text)
const problemOf = (text: string) => {
  const read = readForeignHash(text)
  return 'problem' in read ? read.problem : 'accepted'
}
const base64 = (length: number, byte = 1) => Buffer.alloc(length, byte).toString('base64')
const bytes = (count: number) => base64(count).replaceAll('=', '')
const storedOf = (text: string) => {
  const read = readForeignHash(text)
  if ('problem' in read) throw new Error(read.problem)
  return read.hash
}

describe('a hash of another system', () => {
  it.each(foreignVectors)(
    'is accepted, and only the right password matches it ($system, $format)',
    async ({ format, password, hash, stored = hash }) => {
      expect(readForeignHash(hash)).toEqual({ hash: stored, format })
      expect(await passwords.verify(stored, password)).toBe(true)
      for (const other of [`${password} `, `x${password}`, ''])
        expect(await passwords.verify(stored, other)).toBe(false)
    },
  )

  it.each(foreignVectors)(
    'does not match if one bit of its digest differs ($system, $format)',
    async ({ password, hash, stored = hash }) => {
      const at = stored.search(/[^$]+$/) + 5
      const other = `${stored.slice(0, at)}${stored[at] === 'A' ? 'B' : 'A'}${stored.slice(at + 1)}`
      expect(accepts(other)).toBe(true)
      expect(await passwords.verify(other, password)).toBe(false)
    },
  )

  it('is accepted with and without base64 padding, and with `.` instead of `+`', async () => {
    const variants = [
      '$scrypt$ln=16384,r=8,p=1$2npRo7P03Mt8keSoMbyD/tKFWyUzjiQf2svUaNDSrhA$MiCzNcIplSMqSBrm4HckjYqYhaVPPjTARTzwB1cVNYE',
      '$pbkdf2-sha256$100000$1jP.5Zxpxgtee/iPxGgOz0RfE9/KJuDElP1ley4VxXc=$QJxzfvdbHYBpydCbHoFg3GJEqMFULwskiuqiJctoYpI=',
    ]
    for (const hash of variants) expect(await passwords.verify(storedOf(hash), 'test')).toBe(true)
    const django = foreignVectors.find(({ hash }) => hash.startsWith('pbkdf2_sha256'))
    const unpadded = String(django?.hash).replace('=', '').replace('+', '.')
    expect(await passwords.verify(storedOf(unpadded), 'un mot de passe')).toBe(true)
    const argon2 = foreignVectors[0]?.hash
    expect(storedOf(`${argon2}=`)).toBe(argon2)
    expect(storedOf(String(foreignVectors[2]?.hash).replace('+', '.'))).toBe(foreignVectors[2]?.stored)
  })

  it('is accepted in plain and in URL-safe base64 if it is from Firebase', async () => {
    for (const { hash, password } of foreignVectors.filter(({ format }) => format === 'fbscrypt')) {
      const urlSafe = hash
        .replaceAll('+', '-')
        .replaceAll('/', '_')
        .replaceAll(/=+(?=[,$]|$)/g, '')
      expect(urlSafe).not.toBe(hash)
      expect(await passwords.verify(storedOf(urlSafe), password)).toBe(true)
    }
  })

  it.each(['A', 'AAAAA', 'AA=A', 'AAAA=', 'AA===', 'AAA AAAA', 'AAAA\nAAA', 'AAA-AAAA', 'AAAÀAAAA'])(
    'is refused if its salt is not base64: %j',
    salt => {
      expect(accepts(`$pbkdf2-sha256$1000$${salt}AAAAAAAA$${bytes(32)}`)).toBe(false)
    },
  )
})

describe('the limits of a foreign hash', () => {
  const argon2 = (m: number, t: number, p: number, salt = 16, hash = 32) =>
    `$argon2id$v=19$m=${m},t=${t},p=${p}$${bytes(salt)}$${bytes(hash)}`
  const bcrypt = (cost: string) => `$2b$${cost}$${'C'.repeat(53)}`
  const django = (rounds: number | string, salt = 'saltsalt', hash = 32) =>
    `pbkdf2_sha256$${rounds}$${salt}$${base64(hash)}`
  const pbkdf2 = (rounds: number | string, salt = 16, hash = 32) =>
    `$pbkdf2-sha512$${rounds}$${bytes(salt)}$${bytes(hash)}`
  const scrypt = (ln: number, r: number, p: number, salt = 16, hash = 32) =>
    `$scrypt$ln=${ln},r=${r},p=${p}$${bytes(salt)}$${bytes(hash)}`
  const firebase = ({ n = 14, r = 8, p = 1, ss = 1, sk = 64, salt = 10, hash = 64 } = {}) =>
    `$fbscrypt$v=1,n=${n},r=${r},p=${p},ss=${base64(ss)},sk=${base64(sk)}$${base64(salt)}$${base64(hash)}`

  it.each([
    ['Argon2 with 256 MiB', argon2(262_144, 4, 1), argon2(262_145, 1, 1)],
    ['Argon2 with 16 lanes', argon2(8192, 1, 16), argon2(8192, 1, 17)],
    ['Argon2 with 1 GiB as memory times passes', argon2(1024, 1024, 1), argon2(1024, 1025, 1)],
    ['Argon2 with 8 KiB for each lane', argon2(16, 1, 2), argon2(15, 1, 2)],
    ['Argon2 with a pass', argon2(8, 1, 1), argon2(8, 0, 1)],
    ['Argon2 with a lane', argon2(8, 1, 1), argon2(8, 1, 0)],
    ['Argon2 with a salt of 8 bytes', argon2(8, 1, 1, 8), argon2(8, 1, 1, 7)],
    ['Argon2 with a salt of 64 bytes', argon2(8, 1, 1, 64), argon2(8, 1, 1, 65)],
    ['Argon2 with a hash of 16 bytes', argon2(8, 1, 1, 16, 16), argon2(8, 1, 1, 16, 15)],
    ['Argon2 with a hash of 64 bytes', argon2(8, 1, 1, 16, 64), argon2(8, 1, 1, 16, 65)],
    ['bcrypt with cost 4', bcrypt('04'), bcrypt('03')],
    ['bcrypt with cost 14', bcrypt('14'), bcrypt('15')],
    ['bcrypt with two digits of cost', bcrypt('05'), bcrypt('5')],
    ['bcrypt with 53 characters', bcrypt('05'), `${bcrypt('05')}C`],
    ['Django with 1,000 rounds', django(1000), django(999)],
    ['Django with 5,000,000 rounds', django(5_000_000), django(5_000_001)],
    ['Django with a salt of 4 bytes', django(1000, 'salt'), django(1000, 'sal')],
    ['Django with a salt of 64 bytes', django(1000, 'é'.repeat(32)), django(1000, 'é'.repeat(33))],
    ['Django with a hash of 32 bytes', django(1000), django(1000, 'salt', 31)],
    ['Django with a hash of 32 bytes', django(1000), django(1000, 'salt', 33)],
    ['Django without control characters', django(1000, 'sa lt'), django(1000, 'sa\0lt')],
    ['Django without lone surrogates', django(1000, 'salté'), django(1000, 'salt\ud83d')],
    ['PBKDF2 with 1,000 rounds', pbkdf2(1000), pbkdf2(999)],
    ['PBKDF2 with 5,000,000 rounds', pbkdf2(5_000_000), pbkdf2(5_000_001)],
    ['PBKDF2 with the length of its hash', pbkdf2('i=1000,l=32'), pbkdf2('i=1000,l=31')],
    ['PBKDF2 with a salt of 4 bytes', pbkdf2(1000, 4), pbkdf2(1000, 3)],
    ['PBKDF2 with a salt of 64 bytes', pbkdf2(1000, 64), pbkdf2(1000, 65)],
    ['PBKDF2 with a hash of 16 bytes', pbkdf2(1000, 16, 16), pbkdf2(1000, 16, 15)],
    ['PBKDF2 with a hash of 64 bytes', pbkdf2(1000, 16, 64), pbkdf2(1000, 16, 65)],
    ['scrypt with 256 MiB as 128·N·r', scrypt(18, 8, 1), scrypt(18, 9, 1)],
    ['scrypt with 1 GiB as 128·N·r·p', scrypt(18, 8, 4), scrypt(18, 8, 5)],
    ['scrypt with 256 MiB for its lanes', scrypt(2, 1, 2 ** 21), scrypt(1, 1, 2 ** 22)],
    ['scrypt with N of at least 2', scrypt(1, 8, 1), scrypt(0, 8, 1)],
    ['scrypt with N of 1,024', scrypt(1024, 8, 1), scrypt(512, 8, 1)],
    ['scrypt with N as a power of 2', scrypt(2048, 8, 1), scrypt(2047, 8, 1)],
    ['scrypt with N less than 2^(16·r)', scrypt(15, 1, 1), scrypt(16, 1, 1)],
    ['scrypt with blocks', scrypt(10, 1, 1), scrypt(10, 0, 1)],
    ['scrypt with lanes', scrypt(10, 1, 1), scrypt(10, 1, 0)],
    ['scrypt with ln up to 31 as a logarithm', scrypt(20, 2, 1), scrypt(31, 8, 1)],
    ['scrypt with a salt of 4 bytes', scrypt(10, 8, 1, 4), scrypt(10, 8, 1, 3)],
    ['scrypt with a salt of 64 bytes', scrypt(10, 8, 1, 64), scrypt(10, 8, 1, 65)],
    ['scrypt with a hash of 16 bytes', scrypt(10, 8, 1, 16, 16), scrypt(10, 8, 1, 16, 15)],
    ['scrypt with a hash of 64 bytes', scrypt(10, 8, 1, 16, 64), scrypt(10, 8, 1, 16, 65)],
    ['Firebase with 256 MiB', firebase({ n: 18 }), firebase({ n: 19 })],
    ['Firebase with a separator', firebase({ ss: 1 }), firebase({ ss: 65 })],
    ['Firebase with a key of 64 bytes', firebase(), firebase({ sk: 63 })],
    ['Firebase with a hash of 64 bytes', firebase(), firebase({ hash: 65 })],
    ['Firebase with a salt of 4 bytes', firebase({ salt: 4 }), firebase({ salt: 3 })],
    ['Firebase with version 1', firebase(), firebase().replace('v=1', 'v=2')],
  ])('accept %s, and refuse a hash just beyond this limit', async (_, within, beyond) => {
    expect(accepts(within)).toBe(true)
    expect(accepts(beyond)).toBe(false)
    if (!within.startsWith('$argon2')) expect(await passwords.verify(beyond, 'un mot de passe')).toBe(false)
  })

  it('allow only scrypt hashes that can be computed', async () => {
    for (const hash of [scrypt(15, 1, 1), scrypt(1, 1, 1), scrypt(2, 1, 2 ** 15), scrypt(18, 8, 1)])
      expect(await passwords.verify(hash, 'un mot de passe')).toBe(false)
  })
})

describe('bcrypt', () => {
  // Created with Python bcrypt 3.2: bcrypt.hashpw(('é'*40).encode()[:72], bcrypt.gensalt(5))
  const of72Bytes = '$2b$05$2SMOo3ZwkTtx1Tv0xccY0.QQOydxopbADDl5hG8QQJ3scvAVoGM4C'

  it('reads the first 72 bytes of a password, and accepts passwords of up to 1,024 characters', async () => {
    for (const length of [36, 40, 1024])
      expect(await passwords.verify(of72Bytes, 'é'.repeat(length))).toBe(true)
    expect(await passwords.verify(of72Bytes, 'é'.repeat(35))).toBe(false)
    expect(await passwords.verify(of72Bytes, 'é'.repeat(1025))).toBe(false)
  })

  it('treats a NUL in a password as an ordinary byte', async () => {
    // The bcrypt programs in C and PHP refuse passwords with a NUL, so the library computes the hash.
    const { hash } = await import('@node-rs/bcrypt')
    const stored = await hash('before\0after', 4)
    expect(await passwords.verify(stored, 'before\0after')).toBe(true)
    for (const other of ['before', 'before\0', 'before\0other'])
      expect(await passwords.verify(stored, other)).toBe(false)
  })
})

describe('the reason for a refusal', () => {
  it.each([
    ['5f4dcc3b5aa765d61d8327deb882cf99', 'MD5'],
    ['$1$saltsalt$qjXMvbEw8oaL.CzflDtaK/', 'MD5'],
    ['$P$B5gr2Hl1Nci3ZnFZGDcfEJxZdGfHeO1', 'MD5'],
    ['md5$salt$5f4dcc3b5aa765d61d8327deb882cf99', 'MD5'],
    ['5baa61e4c9b93f3f0682250b6cf8331b7ee68fd8', 'SHA-1'],
    ['sha1$salt$5baa61e4c9b93f3f0682250b6cf8331b7ee68fd8', 'SHA-1'],
    ['{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=', 'SHA-1'],
    ['*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19', 'SHA-1'],
    ['5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8', 'SHA-2'],
    ['$sha512$pf=e1NBTFR9$NW9w$6ctp', 'SHA-2'],
    ['{SSHA}JFZFs0oHzxbMwkSJmYVeI8MnTDy/276a', 'SSHA'],
    ['{SSHA512}xPUl/px+1cG55rUH4rzcwxdOIPSB2Ting', 'SSHA'],
    ['correct horse battery', 'Plain text'],
    ['pa$$word{1}', 'plain text'],
  ])('is that %s is too weak to keep', (text, name) => {
    expect(problemOf(text)).toContain(name)
    expect(problemOf(text)).toContain('too weak to keep')
    expect(problemOf(text)).toContain('without a hash')
  })

  it.each([
    ['$2x$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW', '$2x$'],
    ['$2$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW', 'bcrypt'],
    ['$argon2d$v=19$m=4096,t=1,p=1$c2FsdHNhbHQ$c2FsdHNhbHRzYWx0c2FsdA', 'Argon2'],
    ['$argon2id$v=16$m=4096,t=1,p=1$c2FsdHNhbHQ$c2FsdHNhbHRzYWx0c2FsdA', 'Argon2'],
    ['bcrypt_sha256$$2b$12$abc', 'bcrypt over SHA-256'],
    ['bcrypt$$2b$12$abc', 'bcrypt'],
    ['pbkdf2_sha1$1000$salt$abc', 'PBKDF2'],
    ['pbkdf2:sha256:1000$salt$abc', 'PBKDF2'],
    ['scrypt:32768:8:1$salt$abc', 'scrypt'],
    ['$firescrypt$ln=14,r=8,p=1$abc', 'Firebase scrypt'],
    ['$5$salt$abc', 'SHA-256-crypt'],
    ['$6$salt$abc', 'SHA-512-crypt'],
    ['$y$j9T$abc', 'yescrypt'],
    ['$2b$05$tooshort', 'bcrypt'],
    ['$scrypt$ln=10$salt$hash', 'scrypt'],
    ['pbkdf2_sha256$1000$salt', 'Django PBKDF2'],
    ['$fbscrypt$v=1', 'Firebase scrypt'],
  ])('contains the name of the format of %s', (text, name) => {
    expect(problemOf(text)).toContain(name)
  })

  it.each(['', '!'])('is that the text %j is not a hash', text => {
    expect(problemOf(text)).toContain('not a hash')
  })

  it.each(foreignVectors)('is given if white space surrounds the hash ($system, $format)', ({ hash }) => {
    for (const text of [` ${hash}`, `${hash} `, `${hash}\n`]) expect(accepts(text)).toBe(false)
  })

  it('never contains a part of the hash, and ends with a full stop', () => {
    const secret = 'c2VjcmV0c2VjcmV0'
    for (const { hash } of foreignVectors) {
      const problem = problemOf(`${hash.replace(/[^$]+$/, '')}${secret}!`)
      expect(problem).not.toContain(secret)
      expect(problem).toMatch(/^[A-Za-z$].*\.$/)
    }
    expect(problemOf(secret)).not.toContain(secret)
  })
})

describe('any text', () => {
  const part = fc.oneof(
    fc.constantFrom(...foreignVectors.flatMap(({ hash }) => hash.split(/(?<=[$,=])/))),
    fc.string({ unit: 'binary' }),
    fc.nat().map(String),
  )
  const texts = fc.oneof(
    fc.array(part).map(parts => parts.join('')),
    fc
      .tuple(fc.constantFrom(...foreignVectors), fc.nat({ max: 200 }), fc.string())
      .map(([{ hash }, at, inserted]) => hash.slice(0, at) + inserted + hash.slice(at + 1)),
  )

  it('is either accepted within the limits or refused with a reason, and the stored form of an accepted text is accepted again', () => {
    fc.assert(
      fc.property(texts, text => {
        const read = readForeignHash(text)
        if ('problem' in read) {
          expect(read.problem).toMatch(/\.$/)
          return
        }
        expect(readForeignHash(read.hash)).toEqual(read)
        expect(read.hash.isWellFormed()).toBe(true)
        expect(read.hash).not.toContain('\0')
        const numbers = [...read.hash.matchAll(/(?<=[a-z]=|sha\d{3}\$|\$2[aby]\$)\d+/g)].map(Number)
        expect(Math.max(0, ...numbers)).toBeLessThanOrEqual(5_000_000)
      }),
      { numRuns: runs(10_000) },
    )
  })
})
