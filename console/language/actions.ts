// Returns texts for the entries of the audit: the action, and the changed fields with the old and new value.
import type { Audit, AuditedAction } from '../api/types.ts'
import type { Bilingual, Key, Speech } from './language.tsx'

export const actionNames: Readonly<Record<AuditedAction, Bilingual>> = {
  createUser: { en: 'Create user', fr: 'Création d’un utilisateur' },
  changeUser: { en: 'Change user', fr: 'Modification d’un utilisateur' },
  deleteUser: { en: 'Delete user', fr: 'Suppression d’un utilisateur' },
  resetUsage: { en: 'Reset uses', fr: 'Remise à zéro des usages' },
  sendReset: { en: 'Send reset mail', fr: 'Envoi d’une réinitialisation' },
  exportUser: { en: 'Export data', fr: 'Export des données' },
  setPassword: { en: 'Set password', fr: 'Définition d’un mot de passe' },
  endSessions: { en: 'End all sessions', fr: 'Fin de toutes les sessions' },
  endUserSession: { en: 'End session', fr: 'Fin d’une session' },
  revokeUserApiToken: { en: 'Revoke the key "api-token"', fr: 'Révocation de la clé api-token' },
  revokeUserKey: { en: 'Revoke API key', fr: 'Révocation d’une clé d’API' },
  revokeUserKeys: { en: 'Revoke all API keys', fr: 'Révocation de toutes les clés d’API' },
  removeUserIdentity: { en: 'Remove identity', fr: 'Retrait d’une identité' },
  removeUserWebhook: { en: 'Remove webhook', fr: 'Retrait d’un webhook' },
  emitAlert: { en: 'Send alert', fr: 'Envoi d’une alerte' },
  retryDelivery: { en: 'Retry delivery', fr: 'Nouvel essai d’un envoi' },
  signInToConsole: { en: 'Sign in to the console', fr: 'Connexion à la console' },
}

/** The actions in the order of the selection list. */
export const actions = Object.keys(actionNames) as AuditedAction[]

type Changes = Pick<Audit['entries'][number], 'action' | 'changes' | 'previous'>

/** Returns one text for each changed field, for example "Plan: free → pro". */
export function changesInWords({ action, changes, previous }: Changes, { t }: Pick<Speech, 't'>): string[] {
  // The email of a new user is not shown, because every new user has one.
  const { email: _email, ...ofNewUser } = changes ?? {}
  const shown = action === 'createUser' ? ofNewUser : (changes ?? {})
  return Object.entries(shown).map(([field, value]) => {
    const name = Object.hasOwn(fieldNames, field) ? t(fieldNames[field] as Key) : field
    const after = valueInWords(field, value, t)
    if (previous === null || !Object.hasOwn(previous, field)) return t('fieldSet', { name, after })
    const before = valueInWords(field, previous[field], t)
    return before === after
      ? t('fieldSet', { name, after: t('unchanged', { value: after }) })
      : t('fieldChanged', { name, before, after })
  })
}

const fieldNames: Readonly<Record<string, Key>> = {
  plan: 'plan',
  is_active: 'status',
  email_verified: 'verified',
  email: 'email',
  password: 'password',
  session: 'session',
  key: 'apiKey',
  provider: 'provider',
  type: 'type',
  delivery: 'delivery',
  quota: 'quota',
}

function valueInWords(field: string, value: unknown, t: Speech['t']): string {
  if (field === 'is_active') return t(value === 0 || value === false ? 'inactive' : 'active')
  if (field === 'email_verified') return t(value === true ? 'yes' : 'no')
  // The audit does not contain the values of emails and passwords.
  if (field === 'email' || field === 'password') return t('notRecorded')
  return typeof value === 'string' ? value : JSON.stringify(value)
}
