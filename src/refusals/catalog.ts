// Contains all texts that clients receive, in both languages: the text of each refusal by its code, and the messages of
// successful responses. English texts contain only ASCII.

export type Language = 'fr' | 'en'

/** A text in both languages. */
export type Bilingual = Readonly<Record<Language, string>>

export interface CatalogEntry extends Bilingual {
  readonly status: number
  /** The `reason` in the log, for codes with only one possible reason. */
  readonly reason?: string
}

export const catalog = {
  email_invalid: { status: 400, fr: 'Email invalide', en: 'Invalid email' },
  password_too_short: {
    status: 400,
    fr: 'Mot de passe trop court (min 8 caractères)',
    en: 'Password too short (min 8 characters)',
  },
  password_too_long: {
    status: 400,
    fr: 'Mot de passe trop long (max 1024 caractères)',
    en: 'Password too long (max 1024 characters)',
  },
  password_too_common: { status: 400, fr: 'Mot de passe trop courant', en: 'Password too common' },
  password_unchanged: {
    status: 400,
    fr: 'Le nouveau mot de passe doit être différent',
    en: 'The new password must be different',
  },
  code_invalid: { status: 400, fr: 'Code invalide ou expiré', en: 'Invalid or expired code' },
  email_taken: { status: 409, fr: 'Email déjà enregistré', en: 'Email already registered' },
  internal: { status: 500, fr: 'Erreur interne', en: 'Internal error' },
  credentials_missing: { status: 400, fr: 'Email et mot de passe requis', en: 'Email and password required' },
  credentials_invalid: {
    status: 401,
    fr: 'Identifiants invalides',
    en: 'Invalid credentials',
    reason: 'credentials',
  },
  refresh_token_missing: { status: 400, fr: 'refresh_token manquant', en: 'Missing refresh_token' },
  refresh_token_invalid: {
    status: 401,
    fr: 'Refresh token invalide ou expiré',
    en: 'Invalid or expired refresh token',
  },
  refresh_token_inactive: {
    status: 401,
    fr: 'Refresh token invalide, révoqué ou expiré',
    en: 'Invalid, revoked or expired refresh token',
  },
  user_not_found: { status: 401, fr: 'Utilisateur introuvable', en: 'User not found', reason: 'user' },
  token_invalid: { status: 401, fr: 'Token invalide ou expiré', en: 'Invalid or expired token' },
  key_check_failed: {
    status: 401,
    fr: 'Token invalide ou expiré',
    en: 'Invalid or expired token',
    reason: 'check_failed',
  },
  unauthenticated: { status: 401, fr: 'Non authentifié', en: 'Not authenticated', reason: 'missing' },
  bearer_required: {
    status: 403,
    fr: "Jeton d'accès requis",
    en: 'Access token required',
    reason: 'api_key',
  },
  scope_insufficient: { status: 403, fr: 'Portée insuffisante', en: 'Insufficient scope', reason: 'scope' },
  email_unverified: { status: 403, fr: 'E-mail non vérifié', en: 'Email not verified', reason: 'email' },
  plan_insufficient: { status: 403, fr: 'Plan insuffisant', en: 'Insufficient plan', reason: 'plan' },
  daily_limit_reached: { status: 429, ...dailyLimitSentence(1), reason: 'limits.free_daily' },
  quota_exceeded: { status: 429, fr: 'Quota atteint', en: 'Quota reached' },
  rate_limited: { status: 429, fr: 'Trop de requêtes', en: 'Too many requests' },
  credentials_ambiguous: {
    status: 400,
    fr: "En-têtes d'authentification ambigus",
    en: 'Ambiguous authentication headers',
  },
  path_invalid: { status: 400, fr: 'Chemin invalide', en: 'Invalid path' },
  request_invalid: { status: 400, fr: 'Requête invalide', en: 'Invalid request' },
  headers_too_large: { status: 431, fr: 'En-têtes trop volumineux', en: 'Headers too large' },
  body_too_large: { status: 413, fr: 'Requête trop volumineuse', en: 'Request too large' },
  route_unknown: { status: 404, fr: 'Route inconnue', en: 'Unknown route' },
  method_not_allowed: { status: 405, fr: 'Méthode non autorisée', en: 'Method not allowed' },
  service_unavailable: { status: 503, fr: 'Service indisponible', en: 'Service unavailable' },
  upstream_unreachable: { status: 502, fr: 'Service amont injoignable', en: 'Upstream service unreachable' },
  upstream_timeout: { status: 504, fr: 'Délai du service amont dépassé', en: 'Upstream service timed out' },
  upstream_unavailable: { status: 503, fr: 'Service amont indisponible', en: 'Upstream service unavailable' },
  key_name_invalid: { status: 400, fr: 'Nom de clé invalide', en: 'Invalid key name' },
  scope_invalid: { status: 400, fr: 'Portée invalide', en: 'Invalid scope' },
  expiry_invalid: { status: 400, fr: 'Durée de validité invalide', en: 'Invalid lifetime' },
  key_limit_reached: {
    status: 409,
    fr: 'Nombre maximal de clés atteint',
    en: 'Maximum number of keys reached',
  },
  key_unknown: { status: 404, fr: 'Clé introuvable', en: 'Key not found' },
  id_token_missing: { status: 400, fr: 'id_token manquant', en: 'Missing id_token' },
  id_token_invalid: {
    status: 401,
    fr: "Jeton d'identité invalide ou expiré",
    en: 'Invalid or expired ID token',
  },
  provider_unknown: { status: 404, fr: 'Fournisseur inconnu', en: 'Unknown provider' },
  provider_unavailable: {
    status: 503,
    fr: "Fournisseur d'identité indisponible",
    en: 'Identity provider unavailable',
  },
  provider_email_unverified: {
    status: 403,
    fr: 'E-mail non vérifié par le fournisseur',
    en: 'Email not verified by the provider',
    reason: 'provider_email',
  },
  account_exists: {
    status: 409,
    fr: 'Un compte existe déjà avec cet e-mail',
    en: 'An account with this email already exists',
  },
  registration_closed: {
    status: 403,
    fr: 'Inscriptions fermées',
    en: 'Registration closed',
    reason: 'register',
  },
  password_not_set: { status: 409, fr: 'Aucun mot de passe défini', en: 'No password set' },
  last_sign_in_method: { status: 409, fr: 'Dernier moyen de connexion', en: 'Last sign-in method' },
  webhook_url_invalid: {
    status: 400,
    fr: 'URL de webhook invalide (HTTPS requis)',
    en: 'Invalid webhook URL (HTTPS required)',
  },
  plan_invalid: { status: 400, fr: 'Plan invalide', en: 'Invalid plan' },
  user_inactive: { status: 409, fr: 'Utilisateur inactif', en: 'Inactive user' },
  delivery_unknown: { status: 404, fr: 'Livraison introuvable', en: 'Delivery not found' },
  delivery_over: { status: 409, fr: 'Livraison terminée', en: 'Delivery finished' },
  payment_not_configured: { status: 501, fr: 'Paiement non configuré', en: 'Payment not configured' },
  mail_not_configured: {
    status: 501,
    fr: "Envoi d'e-mails non configuré",
    en: 'Email sending not configured',
  },
  admin_unauthorized: { status: 401, fr: 'Non autorisé', en: 'Unauthorized' },
  admin_forbidden: { status: 403, fr: 'Droits insuffisants', en: 'Insufficient rights' },
  admin_disabled: {
    status: 403,
    fr: 'Administration désactivée',
    en: 'Administration disabled',
    reason: 'no_token',
  },
} as const satisfies Record<string, CatalogEntry>

/** @param limit the value of `limits.free_daily`, which the sentence contains */
export function dailyLimitSentence(limit: number): Bilingual {
  return {
    fr: `Limite quotidienne atteinte (plan free: ${limit} ${limit < 2 ? 'course' : 'courses'}/jour)`,
    en: `Daily limit reached (plan free: ${limit} ${limit === 1 ? 'course' : 'courses'}/day)`,
  }
}

/** Returns the text of `quota_exceeded`. @param limit the allowance of the plan, in uses per period */
export function quotaSentence(
  plan: string,
  limit: number,
  quota: string,
  period: 'day' | 'month',
): Bilingual {
  return {
    fr: `Quota atteint (plan ${plan}: ${limit} ${quota}/${period === 'day' ? 'jour' : 'mois'})`,
    en: `Quota reached (plan ${plan}: ${limit} ${quota}/${period})`,
  }
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

/** The `upgrade_url` in refusals because of the plan, the daily limit or a quota. */
export const upgradePath = '/api/v1/subscription/upgrade'

export const messages = {
  registered: { fr: 'Compte créé', en: 'Account created' },
  loggedOut: { fr: 'Déconnexion réussie', en: 'Signed out' },
  sessionsRevoked: { fr: 'Sessions révoquées', en: 'Sessions revoked' },
  sessionEnded: { fr: 'Session fermée', en: 'Session ended' },
  sessionsEnded: { fr: 'Sessions fermées', en: 'Sessions ended' },
  accountDeleted: { fr: 'Compte supprimé', en: 'Account deleted' },
  apiTokenRevoked: { fr: 'Token révoqué', en: 'Token revoked' },
  keyRevoked: { fr: 'Clé révoquée', en: 'Key revoked' },
  keysRevoked: { fr: 'Clés révoquées', en: 'Keys revoked' },
  identityRemoved: { fr: 'Connexion externe supprimée', en: 'External sign-in removed' },
  webhookRemoved: { fr: 'Webhook supprimé', en: 'Webhook removed' },
  deliveryDue: { fr: 'Livraison relancée', en: 'Delivery retried' },
  resetRequested: {
    fr: 'Si ce compte existe, un e-mail a été envoyé',
    en: 'If this account exists, an email was sent',
  },
  passwordChanged: { fr: 'Mot de passe modifié', en: 'Password changed' },
  mailSent: { fr: 'E-mail envoyé', en: 'Email sent' },
  emailVerifiedBefore: { fr: 'E-mail déjà vérifié', en: 'Email already verified' },
  emailVerified: { fr: 'E-mail vérifié', en: 'Email verified' },
  emailChanged: { fr: 'E-mail modifié', en: 'Email changed' },
} as const satisfies Record<string, Bilingual>
