import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isFindableEmail, isStorableEmail, normalizeEmail } from '../../src/accounts/email.ts'
import { runs } from '../support/property-runs.ts'

describe('emails', () => {
  it('are trimmed and converted to lower case when they are normalized', () => {
    expect(normalizeEmail(' \t\u00a0Case1@Example.COM\n')).toBe('case1@example.com')
  })

  it('are lower-cased the same way in every locale', () => {
    expect(normalizeEmail('I@example.com')).toBe('i@example.com')
  })

  it('are converted to NFC, so that all Unicode spellings of an address become the same email', () => {
    for (const spelling of ['rene\u0301@example.com', 'ren\u00e9@example.com', 'RENE\u0301@example.com']) {
      expect(normalizeEmail(spelling)).toBe('ren\u00e9@example.com')
    }
    expect(normalizeEmail('\u1112\u1161\u11ab@example.com')).toBe('\ud55c@example.com')
  })

  it('are converted to NFC, except if they are too long to be valid', () => {
    expect(normalizeEmail(`${'\u1f71'.repeat(254)}@`)).toBe(`${'\u03ac'.repeat(254)}@`)
    const long = `${'e\u0301'.repeat(5_000)}@example.com`
    expect(isStorableEmail(normalizeEmail(long))).toBe(false)
  })

  it.each([
    ['a zero-width space', '\u200b'],
    ['a zero-width joiner', '\u200d'],
    ['a soft hyphen', '\u00ad'],
    ['a byte order mark', '\ufeff'],
    ['a change of direction', '\u202e'],
    ['a tag', '\u{e0061}'],
    ['a word joiner', '\u2060'],
  ])('can be looked up but not stored if they contain %s', (_, character) => {
    const email = normalizeEmail(`a${character}da@example.com`)
    expect([isFindableEmail(email), isStorableEmail(email)]).toEqual([true, false])
  })

  it('do not change when they are normalized again', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), raw => {
        expect(normalizeEmail(normalizeEmail(raw))).toBe(normalizeEmail(raw))
      }),
      { numRuns: runs(2000) },
    )
  })

  it('are valid if they contain an @', () => {
    for (const email of ['a@b', '@@', '@', 'a b@c.d', "a'--@b.c"]) expect(isStorableEmail(email)).toBe(true)
  })

  it.each([
    ['', 'is empty'],
    ['a', 'has no @'],
    ['\uff20', 'has only a full-width @'],
    ['a\u0000@b.c', 'has a NUL'],
    ['a\u001c@b.c', 'has a C0 control'],
    ['a\u007f@b.c', 'has a DEL'],
    ['a\u0085@b.c', 'has a C1 control'],
    ['a\ud800@b.c', 'has a lone high surrogate'],
    ['\udc00a@b.c', 'has a lone low surrogate'],
  ])('cannot be stored if the text is %j, because it %s', email => {
    expect(isStorableEmail(email)).toBe(false)
  })

  it('have at most 254 code points after normalization', () => {
    const rest = '@example.com'
    expect(isStorableEmail('a'.repeat(254 - rest.length) + rest)).toBe(true)
    expect(isStorableEmail('a'.repeat(255 - rest.length) + rest)).toBe(false)
    expect(isStorableEmail('😀'.repeat(254 - rest.length) + rest)).toBe(true)
    expect(isStorableEmail('😀'.repeat(255 - rest.length) + rest)).toBe(false)
    // Lower-casing turns İ into two code points.
    expect(isStorableEmail(normalizeEmail('İ'.repeat(200) + rest))).toBe(false)
  })

  it('contain no control character and no lone surrogate if they can be stored', () => {
    const sent = fc.string({
      unit: fc.oneof(
        fc.constant('@'),
        fc.integer({ max: 0xffff }).map(unit => String.fromCharCode(unit % 0x10000)),
      ),
    })
    fc.assert(
      fc.property(sent, raw => {
        const email = normalizeEmail(raw)
        fc.pre(isStorableEmail(email))
        expect(Buffer.from(email).toString()).toBe(email)
        expect(email).not.toMatch(/[\p{Cc}\p{Cf}]/u)
        expect(email.normalize('NFC')).toBe(email)
      }),
      { numRuns: runs(2000) },
    )
  })
})
