// Contains the built-in texts of mails, in French and English. They are used for mails without a template. The texts
// never contain the address of another user.
import type { MailConfig } from '../../config/sections/schema.ts'
import type { CodeKind, MailKind, NoticeKind } from '../mail-kind.ts'

export interface Values {
  readonly code: string
  readonly token: string
  /** Empty if no link is configured. */
  readonly link: string
  readonly email: string
  readonly minutes: string
  /** The text of a notice; empty in mails with a code. */
  readonly notice: string
  readonly product: string
  /** The contact for questions; empty if none is configured. */
  readonly contact: string
}

interface Texts {
  readonly subjects: Readonly<Record<MailKind, string>>
  notices(product: string): Readonly<Record<NoticeKind, string>>
  codeText(kind: CodeKind, values: Values): string
  noticeText(values: Values): string
}

export const texts: Readonly<Record<MailConfig['language'], Texts>> = {
  fr: {
    subjects: {
      reset: 'Réinitialisez votre mot de passe',
      verify: 'Confirmez votre adresse e-mail',
      email: 'Confirmez votre nouvelle adresse e-mail',
      password_changed: 'Votre mot de passe a été modifié',
      email_changed: 'Votre adresse e-mail a été modifiée',
      account_deleted: 'Votre compte a été supprimé',
      api_key_created: 'Une clé d’API a été créée',
      identity_linked: 'Une connexion externe a été ajoutée',
      identity_removed: 'Une connexion externe a été supprimée',
      email_change_requested: 'Un changement d’adresse e-mail a été demandé',
      email_taken: 'Cette adresse e-mail a déjà un compte',
    },
    notices: product => ({
      password_changed: `Le mot de passe de votre compte ${product} a été modifié.`,
      email_changed: `L’adresse e-mail de votre compte ${product} a été modifiée. C’est le dernier message envoyé à cette adresse.`,
      account_deleted: `Votre compte ${product} a été supprimé, avec toutes ses données.`,
      api_key_created: `Une nouvelle clé d’API a été créée pour votre compte ${product}.`,
      identity_linked: `Une connexion par un autre fournisseur d’identité a été ajoutée à votre compte ${product}.`,
      identity_removed: `Une connexion par un autre fournisseur d’identité a été supprimée de votre compte ${product}.`,
      email_change_requested: `Un changement d’adresse e-mail a été demandé pour votre compte ${product}. Rien ne change tant qu’il n’est pas confirmé.`,
      email_taken: `Quelqu’un a demandé cette adresse e-mail pour un autre compte ${product}. Elle reste liée à votre compte : rien n’a changé.`,
    }),
    codeText: (kind, { code, link, minutes, product, contact }) =>
      paragraphs(
        'Bonjour,',
        {
          reset: `Voici le code pour choisir un nouveau mot de passe pour votre compte ${product} :`,
          verify: `Voici le code pour confirmer l’adresse e-mail de votre compte ${product} :`,
          email: `Voici le code pour confirmer la nouvelle adresse e-mail de votre compte ${product} :`,
        }[kind],
        code,
        link === '' ? '' : `Ou ouvrez cette page :\n${link}`,
        `Ce code est valable ${inFrench(minutes)} et ne fonctionne qu’une fois. Ne le communiquez à personne.`,
        'Si vous n’avez rien demandé, ignorez ce message. Rien ne change.',
        contact === '' ? '' : `Des questions ? ${contact}`,
      ),
    noticeText: ({ notice, product, contact }) =>
      paragraphs(
        'Bonjour,',
        notice,
        contact === ''
          ? `Si vous n’êtes pas à l’origine de cette demande, contactez ${product} sans attendre.`
          : `Si vous n’êtes pas à l’origine de cette demande, contactez-nous sans attendre :\n${contact}`,
      ),
  },
  en: {
    subjects: {
      reset: 'Reset your password',
      verify: 'Confirm your email address',
      email: 'Confirm your new email address',
      password_changed: 'Your password was changed',
      email_changed: 'Your email address was changed',
      account_deleted: 'Your account was deleted',
      api_key_created: 'An API key was created',
      identity_linked: 'An external sign-in was added',
      identity_removed: 'An external sign-in was removed',
      email_change_requested: 'Email address change requested',
      email_taken: 'This email address already has an account',
    },
    notices: product => ({
      password_changed: `The password of your ${product} account was changed.`,
      email_changed: `The email address of your ${product} account was changed. This is the last message to this address.`,
      account_deleted: `Your ${product} account and all of its data were deleted.`,
      api_key_created: `A new API key was created for your ${product} account.`,
      identity_linked: `A sign-in with another identity provider was added to your ${product} account.`,
      identity_removed: `A sign-in with another identity provider was removed from your ${product} account.`,
      email_change_requested: `Someone requested a new email address for your ${product} account. Nothing changes until the new address is confirmed.`,
      email_taken: `Someone tried to use this email address for another ${product} account. Your account has not changed and keeps this address.`,
    }),
    codeText: (kind, { code, link, minutes, product, contact }) =>
      paragraphs(
        'Hello,',
        {
          reset: `Use this code to set a new password for your ${product} account:`,
          verify: `Use this code to confirm the email address of your ${product} account:`,
          email: `Use this code to confirm the new email address of your ${product} account:`,
        }[kind],
        code,
        link === '' ? '' : `Or open this page:\n${link}`,
        `The code is valid for ${inEnglish(minutes)} and works once. Do not share it with anyone.`,
        'If you did not request this, ignore this message. Nothing changes.',
        contact === '' ? '' : `Questions? ${contact}`,
      ),
    noticeText: ({ notice, product, contact }) =>
      paragraphs(
        'Hello,',
        notice,
        contact === ''
          ? `If this was not you, contact ${product} now.`
          : `If this was not you, contact us now:\n${contact}`,
      ),
  },
}

function paragraphs(...texts: readonly string[]): string {
  return `${texts.filter(text => text !== '').join('\n\n')}\n`
}

function inFrench(minutes: string): string {
  const { count, unit } = largestUnit(Number(minutes))
  return `${count} ${{ minute: 'minute', hour: 'heure', day: 'jour' }[unit]}${count > 1 ? 's' : ''}`
}

function inEnglish(minutes: string): string {
  const { count, unit } = largestUnit(Number(minutes))
  return `${count} ${unit}${count > 1 ? 's' : ''}`
}

/**
 * Converts minutes to a unit that is easy to read. From 2 hours, the result is in hours. From 2 days, the result is in
 * days. Hours and days are rounded down.
 */
function largestUnit(minutes: number): { count: number; unit: 'minute' | 'hour' | 'day' } {
  if (minutes >= 2 * 24 * 60) return { count: Math.floor(minutes / 24 / 60), unit: 'day' }
  if (minutes >= 2 * 60) return { count: Math.floor(minutes / 60), unit: 'hour' }
  return { count: minutes, unit: 'minute' }
}
