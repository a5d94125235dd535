// Composes the subject and text of one mail. Links are built only from the configuration, never from the Host of a
// request.
import type { MailConfig } from '../../config/sections/schema.ts'
import { type CodeKind, isNoticeKind, type MailKind } from '../mail-kind.ts'
import { escapeHtml, fill, type Templates } from './templates.ts'
import { texts, type Values } from './texts.ts'

export interface MailText {
  readonly subject: string
  readonly text: string
  readonly html?: string
}

export interface ComposeSettings extends Pick<MailConfig, 'product' | 'contact' | 'language' | 'links'> {
  readonly templates: Templates
}

/** The code and the token of a mail. Each of them proves that the client can read mails to this address. */
export interface CodeAndToken {
  /** The code has 8 digits. */
  readonly code: string
  /**
   * The token has 64 characters of base64url. It encodes the ID of the row in `account_codes`, and 256 bits that are
   * derived from the row with a secret key.
   */
  readonly token: string
}

interface MailContent {
  readonly kind: MailKind
  readonly address: string
  readonly code?: (CodeAndToken & { readonly goodForMs: number }) | undefined
}

export function compose(
  { kind, address, code }: MailContent,
  { product, contact = '', language, links, templates }: ComposeSettings,
): MailText {
  const { subjects, notices, codeText, noticeText } = texts[language]
  const isNotice = isNoticeKind(kind)
  const template = templates[isNotice ? 'notice' : kind]
  const values: Values = {
    code: code?.code ?? '',
    token: code?.token ?? '',
    link: isNotice || code === undefined ? '' : linkOf(kind, code.token, links),
    email: address,
    minutes: code === undefined ? '' : String(Math.max(1, Math.ceil(code.goodForMs / 60_000))),
    notice: isNotice ? notices(product)[kind] : '',
    product,
    contact,
  }
  const ownText = () => (isNotice ? noticeText(values) : codeText(kind, values))
  return {
    subject:
      template.subject === undefined ? `${subjects[kind]} - ${product}` : fill(template.subject, values),
    text: template.text === undefined ? ownText() : fill(template.text, values),
    ...(template.html === undefined ? {} : { html: fill(template.html, values, escapeHtml) }),
  }
}

/** Inserts the token without encoding, because base64url needs no encoding in any part of a URL. */
function linkOf(kind: CodeKind, token: string, links: MailConfig['links']): string {
  return links[kind]?.replaceAll('{token}', token) ?? ''
}
