// What mails say where no template says it, in French and English: short, plain, and without any address but the reader's.
import type { Config, MailConfig } from '../../config/schema/schema.ts'
import type { CodeKind, MailKind, NoticeKind } from '../mail-kind.ts'

export type Language = NonNullable<Config['mail']>['language']
export type Links = MailConfig['links']

/** What is filled into a text. */
export interface Values {
  readonly code: string
  readonly token: string
  /** Empty where none is configured. */
  readonly link: string
  /** The mail's own address. */
  readonly email: string
  readonly minutes: string
  /** What a notice says; empty in mails with a code. */
  readonly notice: string
}

interface Words {
  readonly subjects: Readonly<Record<MailKind, string>>
  readonly notices: Readonly<Record<NoticeKind, string>>
  codeText(kind: CodeKind, values: Values): string
  noticeText(values: Values): string
}

export const words: Readonly<Record<Language, Words>> = {
  fr: {
    subjects: {
      reset: 'Votre nouveau mot de passe',
      verify: 'Confirmez votre adresse e-mail',
      email: 'Confirmez votre nouvelle adresse e-mail',
      password_changed: 'Votre mot de passe a été modifié',
      email_changed: 'Votre adresse e-mail a été modifiée',
      account_deleted: 'Votre compte a été supprimé',
      email_change_requested: 'Un changement d’adresse e-mail a été demandé',
      email_taken: 'Cette adresse e-mail a déjà un compte',
    },
    notices: {
      password_changed: 'Le mot de passe de votre compte vient d’être modifié.',
      email_changed:
        'L’adresse e-mail de votre compte vient d’être modifiée : ce message est le dernier qui arrive ici.',
      account_deleted: 'Votre compte et tout ce qu’il contenait viennent d’être supprimés.',
      email_change_requested:
        'Un changement d’adresse e-mail a été demandé pour votre compte. Tant qu’il n’est pas confirmé, rien ne change.',
      email_taken:
        'Quelqu’un a demandé cette adresse e-mail pour un autre compte. Elle reste la vôtre, rien n’a changé.',
    },
    codeText: (kind, { code, link, minutes }) =>
      paragraphs(
        'Bonjour,',
        {
          reset: 'Un nouveau mot de passe a été demandé pour votre compte. Votre code :',
          verify: 'Pour confirmer que cette adresse e-mail est la vôtre, voici votre code :',
          email: 'Pour confirmer que cette adresse e-mail devient celle de votre compte, voici votre code :',
        }[kind],
        code,
        link === '' ? '' : `ou ouvrez cette page :\n${link}`,
        `Il est valable ${inFrench(minutes)} et une seule fois. Ne le donnez à personne.`,
        'Si vous n’avez rien demandé, ignorez ce message : rien ne change.',
      ),
    noticeText: ({ notice }) =>
      paragraphs(
        'Bonjour,',
        notice,
        'Si vous n’êtes pas à l’origine de cette demande, prévenez-nous sans attendre.',
      ),
  },
  en: {
    subjects: {
      reset: 'Your new password',
      verify: 'Confirm your email address',
      email: 'Confirm your new email address',
      password_changed: 'Your password was changed',
      email_changed: 'Your email address was changed',
      account_deleted: 'Your account was deleted',
      email_change_requested: 'A change of email address was requested',
      email_taken: 'This email address already has an account',
    },
    notices: {
      password_changed: 'The password of your account has just been changed.',
      email_changed:
        'The email address of your account has just been changed: this message is the last one to come here.',
      account_deleted: 'Your account and everything in it have just been deleted.',
      email_change_requested:
        'A change of email address was requested for your account. Nothing changes until it is confirmed.',
      email_taken:
        'Somebody requested this email address for another account. It remains yours, and nothing has changed.',
    },
    codeText: (kind, { code, link, minutes }) =>
      paragraphs(
        'Hello,',
        {
          reset: 'A new password was requested for your account. Your code:',
          verify: 'To confirm that this email address is yours, here is your code:',
          email: 'To confirm that this email address becomes that of your account, here is your code:',
        }[kind],
        code,
        link === '' ? '' : `or open this page:\n${link}`,
        `It is good for ${inEnglish(minutes)}, and once only. Give it to nobody.`,
        'If you requested nothing, ignore this message: nothing changes.',
      ),
    noticeText: ({ notice }) => paragraphs('Hello,', notice, 'If this was not you, tell us without delay.'),
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

/** Rounded down from two hours and two days on: nobody counts the rest. */
function largestUnit(minutes: number): { count: number; unit: 'minute' | 'hour' | 'day' } {
  if (minutes >= 2 * 24 * 60) return { count: Math.floor(minutes / 24 / 60), unit: 'day' }
  if (minutes >= 2 * 60) return { count: Math.floor(minutes / 60), unit: 'hour' }
  return { count: minutes, unit: 'minute' }
}
