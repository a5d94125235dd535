import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isStorableEmail, normalizeEmail } from '../../src/accounts/email.ts'
import { isMailbox } from '../../src/config/formats/mailbox.ts'
import { verifiedEmail } from '../../src/providers/verified-email.ts'

const any = { issuer: 'https://idp.example.com', domains: [] }
const microsoft = { issuer: 'https://login.microsoftonline.com/6f1c9c3e/v2.0', domains: [] }

describe('an email of a provider', () => {
  it.each([true, 'true'])('counts as verified if email_verified is %j', verified => {
    expect(verifiedEmail({ email: 'A@Example.com', email_verified: verified }, any)).toBe('a@example.com')
  })

  it.each([false, 'false', 'TRUE', 'True', 1, '1', 'yes', null, undefined, [true], {}])(
    'does not count as verified if email_verified is %j',
    verified => {
      const claims = { email: 'a@example.com', email_verified: verified }
      expect(verifiedEmail(claims, any)).toBeUndefined()
      expect(verifiedEmail(claims, microsoft)).toBeUndefined()
    },
  )

  it.each([true, 'true', 1, '1'])('counts as verified if Microsoft sends xms_edov as %j', edov => {
    const claims = { email: 'a@example.com', xms_edov: edov }
    expect(verifiedEmail(claims, microsoft)).toBe('a@example.com')
    expect(verifiedEmail({ ...claims, email_verified: false }, microsoft)).toBe('a@example.com')
  })

  it.each([
    'https://idp.example.com',
    'https://login.microsoftonline.com.example.com/x',
    'https://example.com/login.microsoftonline.com',
    'https://sts.windows.net/x',
  ])('does not count as verified if %s sends xms_edov', issuer => {
    expect(verifiedEmail({ email: 'a@example.com', xms_edov: true }, { ...any, issuer })).toBeUndefined()
  })

  it.each([false, 'false', 0, '0', 2, null, undefined, [1]])(
    'does not count as verified if Microsoft sends xms_edov as %j',
    edov => {
      expect(verifiedEmail({ email: 'a@example.com', xms_edov: edov }, microsoft)).toBeUndefined()
    },
  )

  it.each([
    'bob@\u212Aelvin.example.com',
    '\u212Aevin@example.com',
    '\u017Fam@example.com',
    'é@example.com',
    'a@exämple.com',
    'a@example.com\n',
    ' a@example.com',
    'a@example.com,b@example.com',
    'a@example.com\0',
    '<a@example.com>',
    'a',
    '@example.com',
    'a@',
    '',
    ['a@example.com'],
    7,
    null,
    undefined,
  ])('does not count as verified if it is %j, which is not one ASCII mailbox', email => {
    expect(verifiedEmail({ email, email_verified: true }, any)).toBeUndefined()
  })

  it.each([
    ['a@example.com', 'a@example.com'],
    ['A@EXAMPLE.COM', 'a@example.com'],
    ['a@sub.example.com', undefined],
    ['a@example.com.evil.test', undefined],
    ['a@evilexample.com', undefined],
    ['"a@example.com"@evil.test', undefined],
    ['a@example.com.', undefined],
  ])('%s is read as the verified email %s if only two domains are accepted', (email, expected) => {
    const settings = { ...any, domains: ['example.com', 'example.org'] }
    expect(verifiedEmail({ email, email_verified: true }, settings)).toBe(expected)
  })

  it('converted to lower case equals the normalized email, and can be stored', () => {
    const part = fc.stringMatching(/^[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,12}$/)
    const quoted = fc.stringMatching(/^"[ -~]{0,12}"$/)
    fc.assert(
      fc.property(fc.oneof(part, quoted), part, (local, domain) => {
        const email = `${local}@${domain}`
        fc.pre(isMailbox(email))
        expect(email.toLowerCase()).toBe(normalizeEmail(email))
        expect(isStorableEmail(email.toLowerCase())).toBe(true)
      }),
      { numRuns: 300 },
    )
  })
})
