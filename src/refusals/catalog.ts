// Contains all French texts that clients receive: each refusal by its code, and the messages of successful responses.

export interface CatalogEntry {
  readonly status: number
  readonly error: string
  /** The `reason` in the log, for codes with only one possible reason. */
  readonly reason?: string
}

export const catalog = {
  email_invalid: { status: 400, error: 'Email invalide' },
  password_too_short: { status: 400, error: 'Mot de passe trop court (min 8 caractères)' },
  password_too_long: { status: 400, error: 'Mot de passe trop long (max 1024 caractères)' },
  password_too_common: { status: 400, error: 'Mot de passe trop courant' },
  password_unchanged: { status: 400, error: 'Le nouveau mot de passe doit être différent' },
  code_invalid: { status: 400, error: 'Code invalide ou expiré' },
  email_taken: { status: 409, error: 'Email déjà enregistré' },
  internal: { status: 500, error: 'Erreur interne' },
  credentials_missing: { status: 400, error: 'Email et mot de passe requis' },
  credentials_invalid: { status: 401, error: 'Identifiants invalides', reason: 'credentials' },
  refresh_token_missing: { status: 400, error: 'refresh_token manquant' },
  refresh_token_invalid: { status: 401, error: 'Refresh token invalide ou expiré' },
  refresh_token_inactive: { status: 401, error: 'Refresh token invalide, révoqué ou expiré' },
  user_not_found: { status: 401, error: 'Utilisateur introuvable', reason: 'user' },
  token_invalid: { status: 401, error: 'Token invalide ou expiré' },
  key_check_failed: { status: 401, error: 'Token invalide ou expiré', reason: 'check_failed' },
  unauthenticated: { status: 401, error: 'Non authentifié', reason: 'missing' },
  bearer_required: { status: 403, error: "Jeton d'accès requis", reason: 'api_key' },
  email_unverified: { status: 403, error: 'E-mail non vérifié', reason: 'email' },
  plan_insufficient: { status: 403, error: 'Plan insuffisant', reason: 'plan' },
  daily_limit_reached: { status: 429, error: dailyLimitSentence(1), reason: 'limits.free_daily' },
  rate_limited: { status: 429, error: 'Trop de requêtes' },
  credentials_ambiguous: { status: 400, error: "En-têtes d'authentification ambigus" },
  path_invalid: { status: 400, error: 'Chemin invalide' },
  request_invalid: { status: 400, error: 'Requête invalide' },
  headers_too_large: { status: 431, error: 'En-têtes trop volumineux' },
  body_too_large: { status: 413, error: 'Requête trop volumineuse' },
  route_unknown: { status: 404, error: 'Route inconnue' },
  method_not_allowed: { status: 405, error: 'Méthode non autorisée' },
  service_unavailable: { status: 503, error: 'Service indisponible' },
  upstream_unreachable: { status: 502, error: 'Service amont injoignable' },
  upstream_timeout: { status: 504, error: 'Délai du service amont dépassé' },
  upstream_unavailable: { status: 503, error: 'Service amont indisponible' },
  webhook_url_invalid: { status: 400, error: 'URL de webhook invalide (HTTPS requis)' },
  plan_invalid: { status: 400, error: 'Plan invalide' },
  user_inactive: { status: 409, error: 'Utilisateur inactif' },
  delivery_unknown: { status: 404, error: 'Livraison introuvable' },
  delivery_over: { status: 409, error: 'Livraison terminée' },
  payment_not_configured: { status: 501, error: 'Paiement non configuré' },
  mail_not_configured: { status: 501, error: "Envoi d'e-mails non configuré" },
  admin_unauthorized: { status: 401, error: 'Non autorisé' },
  admin_forbidden: { status: 403, error: 'Droits insuffisants' },
  admin_disabled: { status: 403, error: 'Administration désactivée', reason: 'no_token' },
} as const satisfies Record<string, CatalogEntry>

/** @param limit the value of `limits.free_daily`, which the sentence contains */
export function dailyLimitSentence(limit: number): string {
  return `Limite quotidienne atteinte (plan free: ${limit} ${limit < 2 ? 'course' : 'courses'}/jour)`
}

export type RefusalCode = keyof typeof catalog

/** The codes with several possible reasons. Their refusals need a `reason` when they are created. */
export type CodeWithReasons = {
  [Code in RefusalCode]: (typeof catalog)[Code] extends { status: 401 | 403 | 429 }
    ? (typeof catalog)[Code] extends { reason: string }
      ? never
      : Code
    : never
}[RefusalCode]

/** The `upgrade_url` of plan and daily-limit refusals. */
export const upgradePath = '/api/v1/subscription/upgrade'

export const messages = {
  registered: 'Compte créé',
  loggedOut: 'Déconnexion réussie',
  sessionsRevoked: 'Sessions révoquées',
  sessionEnded: 'Session fermée',
  sessionsEnded: 'Sessions fermées',
  accountDeleted: 'Compte supprimé',
  apiTokenRevoked: 'Token révoqué',
  webhookRemoved: 'Webhook supprimé',
  deliveryDue: 'Livraison relancée',
  resetRequested: 'Si ce compte existe, un e-mail a été envoyé',
  passwordChanged: 'Mot de passe modifié',
  mailSent: 'E-mail envoyé',
  emailVerifiedBefore: 'E-mail déjà vérifié',
  emailVerified: 'E-mail vérifié',
  emailChanged: 'E-mail modifié',
} as const
