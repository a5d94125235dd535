import argon2 from 'argon2'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { noHash } from '../../src/accounts/hashes/foreign-hash.ts'
import { createPasswords, passwordRefusal } from '../../src/accounts/password.ts'

const verifications = vi.spyOn(argon2, 'verify')
const passwords = createPasswords({ concurrency: 2, queue: 64, wait: 5_000 })
const right = 'un mot de passe'
const hash = await passwords.hash(right)

beforeEach(() => {
  verifications.mockClear()
})

describe('passwords', () => {
  it('are stored as salted Argon2id hashes with 19 MiB of memory, two passes and one lane', async () => {
    expect(hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
    expect(await passwords.hash(right)).not.toBe(hash)
  })

  it('must have from 8 to 1,024 code points', () => {
    expect(passwordRefusal('1234567')).toBe('password_too_short')
    expect(passwordRefusal('éééé')).toBe('password_too_short')
    expect(passwordRefusal('12345678')).toBeUndefined()
    expect(passwordRefusal('        ')).toBeUndefined()
    expect(passwordRefusal('😀'.repeat(7))).toBe('password_too_short')
    expect(passwordRefusal('😀'.repeat(1024))).toBeUndefined()
    expect(passwordRefusal('a'.repeat(1025))).toBe('password_too_long')
  })

  it('are refused as too short if they contain a lone surrogate, whatever their length', () => {
    expect(passwordRefusal('12345678\ud83d')).toBe('password_too_short')
    expect(passwordRefusal(`${'a'.repeat(2000)}\udc00`)).toBe('password_too_short')
  })

  it.each([
    ['a space at the end', `${right} `],
    ['a NUL at the end', `${right}\0`],
    ['another letter case', right.toUpperCase()],
    ['no characters', ''],
  ])('are hashed without any change, so a password with %s does not match', async (_, other) => {
    expect(await passwords.verify(hash, other)).toBe(false)
    expect(await passwords.verify(hash, right)).toBe(true)
  })

  it('are not cut after 72 bytes, and their Unicode form is not changed', async () => {
    const long = await passwords.hash('a'.repeat(73))
    expect(await passwords.verify(long, 'a'.repeat(72))).toBe(false)
    expect(await passwords.verify(await passwords.hash('motdepass\u00e9'), 'motdepasse\u0301')).toBe(false)
  })

  it.each([
    ['no account', undefined, right],
    ['an account without a password', noHash, right],
    ['the stored text of an account without a password', noHash, noHash],
    ['a wrong password', hash, 'un autre mot de passe'],
    ['a password that is too long', hash, 'a'.repeat(5000)],
    ['a lone surrogate', hash, '\ud83d'],
    ['a stored hash of another algorithm', '$2b$10$abcdefghijklmnopqrstuv', right],
  ])('are refused after one comparison with the usual Argon2id parameters: %s', async (_, stored, given) => {
    expect(await passwords.verify(stored, given)).toBe(false)
    expect(verifications).toHaveBeenCalledTimes(1)
    expect(verifications.mock.calls[0]?.[0]).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
  })

  const salt = 'c2FsdHNhbHRzYWx0c2FsdA'
  const output = 'aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNoaGFzaGhhc2g'
  it.each([
    ['a salt of 4 bytes', `$argon2id$v=19$m=4096,t=1,p=1$c2FsdA$${output}`],
    ['an output of 2 bytes', `$argon2id$v=19$m=4096,t=1,p=1$${salt}$aGE`],
    ['no passes', `$argon2id$v=19$m=4096,t=0,p=1$${salt}$${output}`],
    ['no lanes', `$argon2id$v=19$m=4096,t=1,p=0$${salt}$${output}`],
    ['too little memory', `$argon2i$v=19$m=4,t=1,p=1$${salt}$${output}`],
    ['an unknown version', `$argon2id$v=99$m=4096,t=1,p=1$${salt}$${output}`],
    ['memory of 4 GiB', `$argon2id$v=19$m=4194304,t=1,p=1$${salt}$${output}`],
    ['memory of more than 32 bits', `$argon2d$v=19$m=99999999999999999999,t=1,p=1$${salt}$${output}`],
    ['a million passes', `$argon2id$v=19$m=4096,t=1000000,p=1$${salt}$${output}`],
    ['a thousand lanes', `$argon2id$v=19$m=65536,t=1,p=1000$${salt}$${output}`],
  ])(
    'do not match a stored hash with %s, and the check costs as much as for a wrong password',
    async (_, stored) => {
      expect(await passwords.verify(stored, right)).toBe(false)
      expect(verifications.mock.calls.at(-1)?.[0]).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
    },
  )

  it('match a stored hash that has older parameters', async () => {
    const older = await argon2.hash(right, { memoryCost: 4096, timeCost: 3, parallelism: 2 })
    expect(await passwords.verify(older, right)).toBe(true)
    expect(await passwords.verify(older, 'un autre mot de passe')).toBe(false)
  })

  it('are refused with service_unavailable while the hashing queue is full', async () => {
    const busy = createPasswords({ concurrency: 1, queue: 0, wait: 1000 })
    const first = busy.hash(right)
    await expect(busy.hash(right)).rejects.toMatchObject({ code: 'service_unavailable' })
    await expect(busy.verify(undefined, right)).rejects.toMatchObject({ code: 'service_unavailable' })
    await first
  })

  describe('are hashed again', () => {
    const salted = 'c2FsdHNhbHRzYWx0c2FsdA$aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNoaGFzaGhhc2g'

    it.each([
      ['another system', '$2b$05$fH4CAW0UPUna9KlqCinpsugrrHCPgIHfUbHC3gPVsh2PacsULyMNi'],
      ['Argon2i', `$argon2i$v=19$m=65536,t=3,p=1$${salted}`],
      ['Argon2d', `$argon2d$v=19$m=65536,t=3,p=1$${salted}`],
      ['version 16', `$argon2id$v=16$m=65536,t=3,p=1$${salted}`],
      ['less than 38,912 KiB as memory times passes', `$argon2id$v=19$m=38911,t=1,p=1$${salted}`],
      ['less work and more lanes', `$argon2id$v=19$m=12970,t=3,p=4$${salted}`],
    ])('if the stored hash is weaker than new hashes, in this case: %s', async (_, weak) => {
      const next = await passwords.strengthen(weak, right)
      expect(next).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
      expect(await passwords.verify(next, right)).toBe(true)
    })

    it.each(['m=19456,t=2,p=1', 'm=38912,t=1,p=1', 'm=12971,t=3,p=4', 'm=65536,t=3,p=4'])(
      'unless the stored Argon2id hash already takes at least as much work as a new hash: %s',
      async parameters => {
        const hashing = vi.spyOn(argon2, 'hash')
        const strong = `$argon2id$v=19$${parameters}$${salted}`
        expect(await passwords.strengthen(strong, right)).toBeUndefined()
        expect(hashing).not.toHaveBeenCalled()
        hashing.mockRestore()
      },
    )

    it('only if a hash can be computed immediately', async () => {
      const busy = createPasswords({ concurrency: 1, queue: 8, wait: 1000 })
      const first = busy.verify(undefined, right)
      expect(await busy.strengthen('$2b$', right)).toBeUndefined()
      await first
      expect(await busy.strengthen('$2b$', right)).toBeDefined()
    })
  })

  it('are compared with foreign hashes only within the limits of the hashing queue', async () => {
    const bcrypt = '$2b$05$fH4CAW0UPUna9KlqCinpsugrrHCPgIHfUbHC3gPVsh2PacsULyMNi'
    const busy = createPasswords({ concurrency: 1, queue: 0, wait: 1000 })
    const first = busy.verify(bcrypt, right)
    await expect(busy.verify(bcrypt, right)).rejects.toMatchObject({ code: 'service_unavailable' })
    expect(await first).toBe(true)
  })
})
