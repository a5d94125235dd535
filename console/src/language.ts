// The page's words, in French and English.
import { signal } from './signal.ts'

const words = {
  overview: ['Vue d’ensemble', 'Overview'],
  routes: ['Routes', 'Routes'],
  users: ['Utilisateurs', 'Users'],
  deliveries: ['Livraisons et e-mails', 'Deliveries and mails'],
  audit: ['Journal', 'Audit'],
  configuration: ['Configuration', 'Configuration'],
  signIn: ['Se connecter', 'Sign in'],
  signOut: ['Se déconnecter', 'Sign out'],
  signedInAs: ['Connecté : {0} ({1})', 'Signed in: {0} ({1})'],
  token: ['Jeton d’opérateur', 'Operator token'],
  tokenHint: [
    'Un jeton de admin.token ou admin.tokens, dans gateway.yaml.',
    'A token of admin.token or admin.tokens, in gateway.yaml.',
  ],
  tokenWrong: ['Ce jeton n’est pas accepté.', 'This token is not accepted.'],
  tooMany: ['Trop d’essais. Réessayez dans une minute.', 'Too many tries. Try again in a minute.'],
  unreachable: ['La passerelle ne répond pas.', 'The gateway does not answer.'],
  failed: ['Échec : {0}', 'Failed: {0}'],
  retry: ['Réessayer', 'Try again'],
  loading: ['Chargement…', 'Loading…'],
  nothing: ['Rien à montrer.', 'Nothing to show.'],
  more: ['Suite', 'More'],
  cancel: ['Annuler', 'Cancel'],
  done: ['Fait : {0}', 'Done: {0}'],
  theme: ['Langue', 'Language'],
  skip: ['Aller au contenu', 'Skip to content'],
  well: ['Tout va bien', 'All is well'],
  notWell: ['À regarder', 'Needs a look'],
  stores: ['Bases', 'Stores'],
  workers: ['Processus', 'Workers'],
  upstreams: ['Services', 'Upstreams'],
  guards: ['Gardes', 'Guards'],
  expires: ['Expire', 'Expires'],
  problem: ['Problème', 'Problem'],
  lastReload: ['Dernier rechargement', 'Last reload'],
  none: ['aucun', 'none'],
  ok: ['accepté', 'taken'],
  refusedReload: ['refusé', 'refused'],
  requestsPerSecond: ['Requêtes par seconde', 'Requests a second'],
  requests: ['requêtes', 'requests'],
  errors: ['erreurs 5xx', '5xx errors'],
  refusals: ['Refus par seconde, par garde', 'Refusals a second, by guard'],
  responseTimes: ['Temps de réponse, ms', 'Response times, ms'],
  hitRate: ['Identités en mémoire, %', 'Identities in memory, %'],
  last15: ['15 dernières minutes', 'The last 15 minutes'],
  healthy: ['en service', 'in use'],
  unhealthy: ['hors service', 'out of use'],
  avoided: ['évité', 'avoided'],
  circuitOpen: ['circuit ouvert', 'circuit open'],
  anybody: ['ouverte à tous', 'open to anybody'],
  optional: ['connexion facultative', 'sign-in optional'],
  required: ['connexion exigée', 'sign-in required'],
  plansOnly: ['formules : {0}', 'plans: {0}'],
  verifiedOnly: ['e-mail vérifié', 'verified email'],
  freeDaily: ['usage quotidien compté', 'daily use counted'],
  rateLimit: ['{0} requêtes par {1} s', '{0} requests in {1} s'],
  everyMethod: ['toutes les méthodes', 'every method'],
  explain: ['Que devient une requête ?', 'What becomes of a request?'],
  method: ['Méthode', 'Method'],
  path: ['Chemin', 'Path'],
  asUser: ['En tant que', 'As'],
  asAnonymous: ['anonyme', 'anonymous'],
  asUserId: ['utilisateur n° {0}', 'user no. {0}'],
  userId: ['N° d’utilisateur', 'User no.'],
  ask: ['Demander', 'Ask'],
  search: ['E-mail ou numéro', 'Email or number'],
  email: ['E-mail', 'Email'],
  plan: ['Formule', 'Plan'],
  state: ['État', 'State'],
  active: ['actif', 'active'],
  inactive: ['inactif', 'inactive'],
  verified: ['vérifié', 'verified'],
  unverified: ['non vérifié', 'not verified'],
  today: ['Usage du jour', 'Use of the day'],
  created: ['Créé', 'Created'],
  sessions: ['Sessions', 'Sessions'],
  apiKey: ['Clé d’API', 'API key'],
  webhook: ['Webhook', 'Webhook'],
  subscription: ['Abonnement', 'Subscription'],
  lastUsed: ['dernière utilisation {0}', 'last used {0}'],
  since: ['depuis le {0}', 'since {0}'],
  whyRefused: ['Pourquoi refusé ?', 'Why refused?'],
  changePlan: ['Changer la formule', 'Change the plan'],
  deactivate: ['Désactiver', 'Deactivate'],
  deactivateText: [
    '{0} ne passera plus, avec aucun jeton ni aucune clé, dès maintenant.',
    '{0} will be refused from now on, with every token and key.',
  ],
  activate: ['Réactiver', 'Reactivate'],
  activateText: ['{0} pourra de nouveau se connecter.', '{0} will be let in again.'],
  planText: [
    '{0} passera à la formule {1}, dès la requête suivante.',
    '{0} will have plan {1} from the next request on.',
  ],
  verify: ['Marquer vérifié', 'Mark as verified'],
  verifyText: ['L’e-mail de {0} comptera comme vérifié.', 'The email of {0} will count as verified.'],
  unverify: ['Marquer non vérifié', 'Mark as not verified'],
  unverifyText: [
    'L’e-mail de {0} ne comptera plus comme vérifié.',
    'The email of {0} will not count as verified any more.',
  ],
  endSession: ['Fermer', 'End'],
  endSessionText: ['Cette session de {0} sera fermée.', 'This session of {0} will end.'],
  endSessions: ['Fermer toutes les sessions', 'End all sessions'],
  endSessionsText: ['{0} devra se reconnecter partout.', '{0} will have to sign in again everywhere.'],
  resetUsage: ['Rendre l’usage du jour', 'Give the day’s use back'],
  resetUsageText: [
    'Le compteur du jour de {0} sera remis à zéro.',
    'The day’s count of {0} will be set to zero.',
  ],
  sendReset: ['Envoyer un code de mot de passe', 'Mail a password code'],
  sendResetText: [
    '{0} recevra un code pour choisir un nouveau mot de passe.',
    '{0} will be mailed a code to choose another password.',
  ],
  revokeKey: ['Révoquer la clé', 'Revoke the key'],
  revokeKeyText: [
    'La clé d’API de {0} ne vaudra plus rien, dès maintenant.',
    'The API key of {0} will be worth nothing from now on.',
  ],
  removeWebhook: ['Retirer le webhook', 'Remove the webhook'],
  removeWebhookText: ['{0} ne recevra plus d’alertes.', '{0} will get no alerts any more.'],
  remove: ['Supprimer le compte', 'Delete the account'],
  removeText: [
    '{0} et tout ce qui lui appartient disparaîtront. Rien ne peut être récupéré.',
    '{0} and all that is theirs will be gone. Nothing can be brought back.',
  ],
  mails: ['E-mails', 'Mails'],
  webhooks: ['Livraisons', 'Deliveries'],
  kind: ['Sorte', 'Kind'],
  attempts: ['Essais', 'Attempts'],
  answer: ['Réponse', 'Answer'],
  next: ['Prochain essai', 'Next attempt'],
  retryNow: ['Réessayer maintenant', 'Try now'],
  retryText: [
    'Un essai sera fait tout de suite, au webhook d’aujourd’hui.',
    'One attempt will be made at once, to the webhook of now.',
  ],
  when: ['Quand', 'When'],
  operator: ['Opérateur', 'Operator'],
  action: ['Action', 'Action'],
  user: ['Utilisateur', 'User'],
  changes: ['Changements', 'Changes'],
  filter: ['Filtrer', 'Filter'],
  key: ['Clé', 'Key'],
  value: ['Valeur', 'Value'],
  line: ['Ligne', 'Line'],
  waits: ['attend un redémarrage', 'waits for a restart'],
  problems: ['Ce que le fichier enregistré a de faux', 'What is wrong with the saved file'],
  anyStatus: ['tous les états', 'every state'],
  anyPlan: ['toutes les formules', 'every plan'],
  back: ['Retour', 'Back'],
} as const satisfies Record<string, readonly [fr: string, en: string]>

export type Word = keyof typeof words
export type Language = 'fr' | 'en'

const stored = localStorage.getItem('peage-language')
const preferred: Language = navigator.language.toLowerCase().startsWith('fr') ? 'fr' : 'en'

export const language = signal<Language>(stored === 'fr' || stored === 'en' ? stored : preferred)

language.subscribe(chosen => {
  document.documentElement.lang = chosen
})

export function choose(chosen: Language): void {
  localStorage.setItem('peage-language', chosen)
  language.set(chosen)
}

/** A sentence with its gaps filled, as text. */
export function t(word: Word, ...gaps: (string | number)[]): string {
  const sentence = words[word][language.get() === 'fr' ? 0 : 1]
  return sentence.replace(/\{(\d)\}/g, (_, index) => String(gaps[Number(index)] ?? ''))
}

/** @param at ISO 8601, or milliseconds */
export function time(at: string | number | null | undefined): string {
  if (at === null || at === undefined) return '–'
  return new Intl.DateTimeFormat(language.get(), { dateStyle: 'medium', timeStyle: 'medium' }).format(
    new Date(at),
  )
}

export function number(value: number | null | undefined, digits = 0): string {
  if (value === null || value === undefined) return '–'
  return new Intl.NumberFormat(language.get(), { maximumFractionDigits: digits }).format(value)
}
