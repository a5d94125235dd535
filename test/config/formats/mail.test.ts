// `mail.smtp`, `mail.from`, `mail.links`: what operators may write, and what is reported otherwise.
import { describe, expect, it } from 'vitest'
import { configOf, linesOf } from '../reading.ts'

const mailOf = (smtp: string) => configOf(`mail: { smtp: ${JSON.stringify(smtp)}, from: "A <a@b.fr>" }`).mail

describe('mail.smtp', () => {
  it.each([
    ['smtps://mx.example.com', { host: 'mx.example.com', port: 465, tls: 'implicit' }],
    ['smtp://MX.example.com', { host: 'mx.example.com', port: 587, tls: 'starttls' }],
    ['smtp://mx:2525/', { host: 'mx', port: 2525, tls: 'starttls' }],
    ['smtp://10.0.0.5', { host: '10.0.0.5', port: 587, tls: 'starttls' }],
    ['smtp://localhost', { host: 'localhost', port: 25, tls: 'unchecked' }],
    ['smtp://127.0.0.2:1025', { host: '127.0.0.2', port: 1025, tls: 'unchecked' }],
    ['smtp://[::1]', { host: '::1', port: 25, tls: 'unchecked' }],
    ['smtps://localhost', { host: 'localhost', port: 465, tls: 'implicit' }],
    ['smtp://mx?tls=off', { host: 'mx', port: 25, tls: 'off' }],
    ['smtp://mx?name=gw.example.com', { host: 'mx', port: 587, tls: 'starttls', name: 'gw.example.com' }],
    [
      'smtps://me%40b.fr:p%2Fa%25:s@mx:466',
      { host: 'mx', port: 466, tls: 'implicit', credentials: { user: 'me@b.fr', password: 'p/a%:s' } },
    ],
  ])('%s is taken apart', (smtp, server) => expect(mailOf(smtp)?.smtp).toEqual(server))

  const expected =
    'must be an smtps:// or smtp:// address such as smtps://user:password@smtp.example.com, log, or empty for none'
  const encoded = 'must have user and password percent-encoded (% is %25, / is %2F, # is %23, ? is %3F)'
  const options = 'must have no other options than ?name=… and ?tls=off, each once'
  it.each([
    ['mx.example.com', expected],
    ['http://mx', expected],
    ['smtp://', expected],
    ['smtp://m x', expected],
    ['smtp://mx/inbox', expected],
    ['smtp://mx#x', expected],
    ['smtp://[mx]', expected],
    ['smtp://mx:0', 'must have a port of 1 to 65535'],
    ['smtp://mx:99999', 'must have a port of 1 to 65535'],
    ['smtp://mx?tls.rejectUnauthorized=false', options],
    ['smtp://mx?disableFileAccess=false', options],
    ['smtp://mx?name=a&name=b', options],
    ['smtp://mx?tls=on', 'must have no other value of ?tls= than off'],
    ['smtps://mx?tls=off', 'has ?tls=off beside smtps://: write smtp://'],
    ['smtp://mx?name=a%0D%0AMAIL', 'must have a host name after ?name='],
    ['smtp://user@mx', 'must have both user and password before the @'],
    ['smtp://user:100%@mx', encoded],
    ['smtp://user:p#1@mx', encoded],
    ['smtp://user:p/1@mx', encoded],
    ['smtps://user:12?1@mx', encoded],
    ['smtp://user:a%0D%0Ab@mx', 'must have no control characters in user and password'],
  ])('%j is a fault', (smtp, message) => {
    expect(linesOf(`mail: { smtp: ${JSON.stringify(smtp)}, from: a@b.fr }`)).toEqual([
      `1:15  mail.smtp  ${message}`,
    ])
  })

  it('switches the section off where it is empty, whatever else is there', () => {
    expect(configOf('mail: { smtp: "${SMTP_URL:-}", language: en }').mail).toBeUndefined()
    expect(configOf('mail: {}').mail).toBeUndefined()
  })
})

describe('mail.from', () => {
  it.each([
    ['Péage <no-reply@example.com>', { name: 'Péage', address: 'no-reply@example.com' }],
    ['"A, B" <a@b.fr>', { name: 'A, B', address: 'a@b.fr' }],
    ['a@b.fr', { name: '', address: 'a@b.fr' }],
  ])('%j is a sender', (from, sender) => {
    expect(configOf(`mail: { smtp: "smtp://mx", from: ${JSON.stringify(from)} }`).mail?.from).toEqual(sender)
  })

  it.each(['Péage', 'Péage <>', 'a@b@c.fr <x>', 'A <a@b.fr>, B <b@b.fr>', 'a@b.fr\r\nBcc: b@b.fr'])(
    '%j is a fault',
    from => {
      expect(linesOf(`mail: { from: ${JSON.stringify(from)} }`)).toEqual([
        '1:15  mail.from  must have an address, such as Péage <no-reply@example.com>',
      ])
    },
  )
})

describe('mail.product', () => {
  const productOf = (more: string) =>
    configOf(`mail: { smtp: "smtp://mx", from: "A <a@mail.b.fr>"${more} }`).mail?.product
  it('is the host of the sender unless it is set', () => {
    expect([productOf(''), productOf(', product: ""'), productOf(', product: " Chez nous "')]).toEqual([
      'mail.b.fr',
      'mail.b.fr',
      'Chez nous',
    ])
  })

  it.each([
    ['A\r\nBcc: b@b.fr', 'must have no line breaks and no control characters'],
    ['A\u0000', 'must have no line breaks and no control characters'],
    ['A\u2028B', 'must have no line breaks and no control characters'],
    ['A\u009bB', 'must have no line breaks and no control characters'],
    ['  ', 'must have a character that is not white space'],
    ['x'.repeat(101), 'must have at most 100 characters'],
  ])('%j is refused', (product, message) => {
    expect(linesOf(`mail: { product: ${JSON.stringify(product)} }`)).toEqual([
      `1:18  mail.product  ${message}`,
    ])
  })
})

describe('mail.contact', () => {
  const contactOf = (contact: string) =>
    configOf(`mail: { smtp: "smtp://mx", from: a@b.fr, contact: ${JSON.stringify(contact)} }`).mail?.contact

  it.each([
    ['help@example.com', 'help@example.com'],
    ['mailto:help@example.com', 'help@example.com'],
    ['https://example.com/help?from=mail#form', 'https://example.com/help?from=mail#form'],
    ['', undefined],
  ])('%j is shown as %j', (contact, shown) => expect(contactOf(contact)).toBe(shown))

  it.each([
    'http://example.com/help',
    'javascript:alert(1)',
    'example.com',
    'mailto:',
    'mailto:a@b.fr?bcc=c@d.fr',
    'https://',
    'https://user:secret@example.com/',
    'https://example.com/a b',
    'https://example.com/"><b>',
    'help@example.com\r\nBcc: b@b.fr',
    'A <help@example.com>',
  ])('%j is refused', contact => {
    expect(linesOf(`mail: { contact: ${JSON.stringify(contact)} }`)).toEqual([
      expect.stringMatching(/^1:18 {2}mail\.contact {2}must /),
    ])
  })
})

describe('a link', () => {
  const written = (link: string) => `mail: { links: { reset: ${JSON.stringify(link)} } }`

  it.each([
    'https://app.example.com/reset#token={token}',
    'http://localhost:3000/r/{token}',
    'http://[::1]/?t={token}',
  ])('%s is taken', link => expect(linesOf(written(link))).toEqual([]))

  it.each([
    [
      'http://app.example.com/#{token}',
      'must be https (http for loopback alone): whoever reads the token can use it',
    ],
    ['https://app.example.com/reset', 'must have {token} after the host, and no other braces'],
    ['https://{token}.example.com/', 'must have {token} after the host, and no other braces'],
    ['https://a/{token}{email}', 'must have {token} after the host, and no other braces'],
    ['https://me@a/{token}', 'must not have user info (user:password@)'],
    ['https://a/{token} x', 'must have white space and everything that no URL holds percent-encoded'],
    [
      '/reset?{token}',
      'must be an https:// address with {token}, such as https://app.example.com/reset#token={token}',
    ],
  ])('%j is a fault', (link, message) => {
    expect(linesOf(written(link))).toEqual([`1:25  mail.links.reset  ${message}`])
  })
})
