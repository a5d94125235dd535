// Tests the texts of mails: the built-in texts in both languages, and texts from templates.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { type ComposeSettings, compose } from '../../../src/mail/composing/compose.ts'
import { noTemplates, readTemplates } from '../../../src/mail/composing/templates.ts'
import { isNoticeKind, mailKinds } from '../../../src/mail/mail-kind.ts'

const folders: string[] = []
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true })
})

const code = { code: '01234567', token: 'tok-en_1', goodForMs: 1_799_500 }
const links = { reset: 'https://app.example.com/reset#token={token}' }
const settings = (more: Partial<ComposeSettings> = {}): ComposeSettings => ({
  product: 'Example',
  contact: undefined,
  language: 'fr',
  links: {},
  templates: noTemplates,
  ...more,
})

function templates(files: Record<string, string>) {
  const folder = mkdtempSync(join(tmpdir(), 'peage-'))
  folders.push(folder)
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return readTemplates(folder)
}

describe('a mail with a code', () => {
  it('shows the code on its own line, the lifetime of the code, and a link only if a link is configured', () => {
    const address = 'ada@example.com'
    const bare = compose({ kind: 'reset', address, code }, settings())
    expect(bare.subject).toBe('Réinitialisez votre mot de passe - Example')
    expect(bare.text.split('\n')).toContain('01234567')
    expect(bare.text).toContain('Ce code est valable 30 minutes et ne fonctionne qu’une fois.')
    expect(bare.text).not.toMatch(/http|tok-en_1/)
    expect(bare.html).toBeUndefined()
    const linked = compose({ kind: 'reset', address, code }, settings({ language: 'en', links }))
    expect(linked.subject).toBe('Reset your password - Example')
    expect(linked.text.split('\n')).toContain('https://app.example.com/reset#token=tok-en_1')
    expect(linked.text).toContain('The code is valid for 30 minutes and works once.')
    expect(compose({ kind: 'verify', address, code }, settings({ links })).text).not.toContain('http')
  })

  it.each([
    [1, '1 minute '],
    [90_000, '2 minutes '],
    [24 * 3_600_000, '24 heures '],
    [30 * 24 * 3_600_000, '30 jours '],
  ])('shows a remaining lifetime of %d ms as "%s"', (goodForMs, words) => {
    const mail = { kind: 'verify', address: 'a@b', code: { ...code, goodForMs } } as const
    expect(compose(mail, settings()).text).toContain(`Ce code est valable ${words}et`)
  })
})

it('every kind of mail has its own subject and text in both languages, and contains no email address except the recipient’s', () => {
  for (const language of ['fr', 'en'] as const) {
    const texts = mailKinds.map(kind => {
      const mail = { kind, address: 'reader@example.com', ...(isNoticeKind(kind) ? {} : { code }) }
      return compose(mail, settings({ language, links }))
    })
    expect(new Set(texts.map(({ subject }) => subject)).size).toBe(mailKinds.length)
    expect(new Set(texts.map(({ text }) => text)).size).toBe(mailKinds.length)
    for (const { subject, text } of texts) {
      expect(`${subject} ${text}`.replaceAll('reader@example.com', '')).not.toContain('@')
      expect(`${subject} ${text}`).not.toMatch(/undefined|\{|\}/)
      expect(text.length).toBeLessThan(500)
    }
  }
})

describe('the product and the contact', () => {
  const texts = (more: Partial<ComposeSettings>) =>
    mailKinds.map(kind => {
      const mail = { kind, address: 'reader@example.com', ...(isNoticeKind(kind) ? {} : { code }) }
      return compose(mail, settings(more))
    })

  it.each(['fr', 'en'] as const)('are in all texts in %s, the product also in all subjects', language => {
    for (const { subject, text } of texts({ language, product: 'Foo & Co', contact: 'help@foo.example' })) {
      expect(subject).toMatch(/ - Foo & Co$/)
      expect(text).toContain('Foo & Co')
      expect(text.split('\n').filter(line => line.endsWith('help@foo.example'))).toHaveLength(1)
    }
    for (const { text } of texts({ language })) expect(text).toContain('Example')
  })

  it('are inserted unchanged, even if they contain a placeholder themselves', () => {
    for (const { subject, text } of texts({ product: '{code}', contact: '{token}' })) {
      expect(`${subject}\n${text}`).toContain('{code}')
      expect(text).toContain('{token}')
    }
  })

  it('are inserted into templates, and are escaped in HTML templates', () => {
    const own = templates({
      'reset.txt': 'Subject: Code for {product}\n\n{code} {contact}',
      'reset.html': '<p>{product} {contact}</p>',
    })
    const mail = { kind: 'reset', address: 'a@b', code } as const
    const more = { product: '<b>"A" & B</b>', contact: 'https://a.example/?a&b', templates: own }
    expect(compose(mail, settings(more))).toEqual({
      subject: 'Code for <b>"A" & B</b>',
      text: '01234567 https://a.example/?a&b',
      html: '<p>&lt;b&gt;&quot;A&quot; &amp; B&lt;/b&gt; https://a.example/?a&amp;b</p>',
    })
    expect(compose(mail, settings({ templates: own })).html).toBe('<p>Example </p>')
  })
})

describe('a template', () => {
  const placeholders = '{code}|{token}|{link}|{email}|{minutes}|{notice}|{other}'

  it('replaces the built-in text; its known placeholders are replaced, but a placeholder in an inserted value is not', () => {
    const own = templates({ 'reset.txt': placeholders })
    const { subject, text } = compose(
      { kind: 'reset', address: '{token}@example.com', code },
      settings({ templates: own, links }),
    )
    expect(subject).toBe('Réinitialisez votre mot de passe - Example')
    expect(text).toBe(
      '01234567|tok-en_1|https://app.example.com/reset#token=tok-en_1|{token}@example.com|30||{other}',
    )
  })

  it('can have a subject in its first line, and an HTML part, in which the inserted values are escaped', () => {
    const own = templates({
      'notice.txt': 'Subject: Chez nous, {email}\r\n\r\n{notice}',
      'notice.html': '<p title="{email}">{notice}</p>',
      'email.html': '<a href="{link}">{code}</a>',
    })
    const notice = compose(
      { kind: 'password_changed', address: `"<&'>"@example.com` },
      settings({ templates: own, language: 'en' }),
    )
    expect(notice).toEqual({
      subject: `Chez nous, "<&'>"@example.com`,
      text: 'The password of your Example account was changed.',
      html: '<p title="&quot;&lt;&amp;&#39;&gt;&quot;@example.com">The password of your Example account was changed.</p>',
    })
    const email = compose(
      { kind: 'email', address: 'a@b', code },
      settings({ templates: own, links: { email: 'https://a/?a&b={token}' } }),
    )
    expect(email.html).toBe('<a href="https://a/?a&amp;b=tok-en_1">01234567</a>')
    expect(email.text).toContain('01234567')
  })

  it('is rejected if it is not UTF-8', () => {
    const folder = mkdtempSync(join(tmpdir(), 'peage-'))
    folders.push(folder)
    writeFileSync(join(folder, 'reset.txt'), Buffer.from([0xff, 0xfe, 0x41]))
    expect(() => readTemplates(folder)).toThrow('not UTF-8')
  })
})
