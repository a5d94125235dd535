// Contains an English and a French sentence for each error code. The console needs its own sentences, because the texts
// in responses are in the language of the gateway and meant for clients.
import type { RefusalCode } from '../../src/refusals/catalog.ts'
import type { Bilingual } from './language.tsx'

type Code = RefusalCode | 'delivery_unknown'

const sentences: Readonly<Record<Code, Bilingual>> = {
  email_invalid: { en: 'The email is invalid.', fr: 'L’adresse e-mail est invalide.' },
  password_too_short: {
    en: 'The password is too short: at least 8 characters.',
    fr: 'Le mot de passe est trop court : au moins 8 caractères.',
  },
  password_too_long: {
    en: 'The password is too long: at most 1,024 characters.',
    fr: 'Le mot de passe est trop long : au plus 1 024 caractères.',
  },
  password_too_common: {
    en: 'The password is too common.',
    fr: 'Le mot de passe est trop courant.',
  },
  password_unchanged: {
    en: 'The new password must differ from the current password.',
    fr: 'Le nouveau mot de passe est le mot de passe actuel.',
  },
  code_invalid: { en: 'The code is wrong or has expired.', fr: 'Le code est faux ou a expiré.' },
  email_taken: {
    en: 'Another user has this email.',
    fr: 'Un autre utilisateur a cette adresse e-mail.',
  },
  internal: {
    en: 'Internal error. See the log of the gateway for the cause.',
    fr: 'Erreur interne. Le journal de la passerelle contient la cause.',
  },
  credentials_missing: {
    en: 'The email or the password is missing.',
    fr: 'L’adresse e-mail ou le mot de passe manque.',
  },
  credentials_invalid: {
    en: 'The email or the password is wrong.',
    fr: 'L’adresse e-mail ou le mot de passe est faux.',
  },
  refresh_token_missing: {
    en: 'The refresh token is missing.',
    fr: 'Le refresh token manque.',
  },
  refresh_token_invalid: {
    en: 'The refresh token is invalid or has expired.',
    fr: 'Le refresh token est invalide ou a expiré.',
  },
  refresh_token_inactive: {
    en: 'The refresh token is invalid, revoked or expired.',
    fr: 'Le refresh token est invalide, révoqué ou expiré.',
  },
  user_not_found: {
    en: 'The user does not exist or is inactive.',
    fr: 'L’utilisateur n’existe pas ou est inactif.',
  },
  token_invalid: {
    en: 'The access token or API key is invalid or has expired.',
    fr: 'Le jeton d’accès ou la clé d’API est invalide ou a expiré.',
  },
  key_check_failed: {
    en: 'The API key could not be checked.',
    fr: 'La clé d’API n’a pas pu être vérifiée.',
  },
  unauthenticated: {
    en: 'The caller is not signed in.',
    fr: 'L’appelant n’est pas connecté.',
  },
  bearer_required: {
    en: 'An access token is required.',
    fr: 'Un jeton d’accès est nécessaire.',
  },
  scope_insufficient: {
    en: 'The scopes of the API key are not sufficient.',
    fr: 'Les portées de la clé d’API ne suffisent pas.',
  },
  email_unverified: {
    en: 'The email is not verified.',
    fr: 'L’adresse e-mail n’est pas vérifiée.',
  },
  key_name_invalid: {
    en: 'The name of the API key is invalid.',
    fr: 'Le nom de la clé d’API est invalide.',
  },
  scope_invalid: { en: 'The scopes are invalid.', fr: 'Les portées sont invalides.' },
  expiry_invalid: {
    en: 'The number of days until the expiry is invalid.',
    fr: 'Le nombre de jours jusqu’à l’expiration est invalide.',
  },
  key_limit_reached: {
    en: 'The user already has as many API keys as the plan allows.',
    fr: 'L’utilisateur a autant de clés d’API que sa formule le permet.',
  },
  key_unknown: { en: 'This API key does not exist.', fr: 'Cette clé d’API n’existe pas.' },
  id_token_missing: { en: 'The ID token is missing.', fr: 'Le jeton d’identité manque.' },
  id_token_invalid: {
    en: 'The ID token is invalid or expired.',
    fr: 'Le jeton d’identité est invalide ou expiré.',
  },
  provider_unknown: {
    en: 'The user has no identity at this provider.',
    fr: 'L’utilisateur n’a pas d’identité chez ce fournisseur.',
  },
  provider_unavailable: {
    en: 'The identity provider does not respond.',
    fr: 'Le fournisseur d’identité ne répond pas.',
  },
  provider_email_unverified: {
    en: 'The identity provider has not verified the email.',
    fr: 'Le fournisseur d’identité n’a pas vérifié l’adresse e-mail.',
  },
  account_exists: {
    en: 'An account with this email already exists.',
    fr: 'Un compte avec cette adresse e-mail existe déjà.',
  },
  registration_closed: { en: 'Registration is closed.', fr: 'Les inscriptions sont fermées.' },
  password_not_set: { en: 'The account has no password.', fr: 'Le compte n’a pas de mot de passe.' },
  last_sign_in_method: {
    en: 'This is the only way to sign in to the account.',
    fr: 'C’est le seul moyen de connexion du compte.',
  },
  plan_insufficient: {
    en: 'The plan of the user is not sufficient.',
    fr: 'La formule de l’utilisateur ne suffit pas.',
  },
  daily_limit_reached: {
    en: 'The daily limit is reached.',
    fr: 'La limite quotidienne est atteinte.',
  },
  quota_exceeded: { en: 'The quota is used up.', fr: 'Le quota est épuisé.' },
  rate_limited: {
    en: 'Too many requests. Wait and try again.',
    fr: 'Trop de requêtes. Attendez et réessayez.',
  },
  credentials_ambiguous: {
    en: 'The request has several credentials.',
    fr: 'La requête porte plusieurs identités.',
  },
  path_invalid: { en: 'The path is invalid.', fr: 'Le chemin est invalide.' },
  request_invalid: {
    en: 'The gateway does not accept this input.',
    fr: 'La passerelle n’accepte pas cette saisie.',
  },
  headers_too_large: { en: 'The headers are too large.', fr: 'Les en-têtes sont trop volumineux.' },
  body_too_large: { en: 'The request is too large.', fr: 'La requête est trop volumineuse.' },
  route_unknown: { en: 'The route does not exist.', fr: 'La route n’existe pas.' },
  method_not_allowed: {
    en: 'The route does not accept this method.',
    fr: 'La route n’accepte pas cette méthode.',
  },
  service_unavailable: {
    en: 'The database is not available, or the gateway is busy. Try again.',
    fr: 'La base de données n’est pas disponible, ou la passerelle est occupée. Réessayez.',
  },
  upstream_unreachable: {
    en: 'The upstream is not reachable.',
    fr: 'Le service est injoignable.',
  },
  upstream_timeout: {
    en: 'The upstream did not respond in time.',
    fr: 'Le service est trop lent.',
  },
  upstream_unavailable: {
    en: 'No target of the upstream is available.',
    fr: 'Aucune cible du service n’est disponible.',
  },
  webhook_url_invalid: {
    en: 'The webhook URL is invalid: HTTPS is required.',
    fr: 'L’URL du webhook est invalide : HTTPS est nécessaire.',
  },
  plan_invalid: { en: 'The plan is unknown.', fr: 'La formule est inconnue.' },
  user_inactive: { en: 'The user is inactive.', fr: 'L’utilisateur est inactif.' },
  delivery_unknown: { en: 'The delivery does not exist.', fr: 'L’envoi n’existe pas.' },
  delivery_over: {
    en: 'This delivery cannot be retried. It was delivered or dropped, or the user has no active webhook.',
    fr: 'Cet envoi ne peut plus être essayé : il est terminé, ou l’utilisateur n’a pas de webhook.',
  },
  payment_not_configured: {
    en: 'Payment is not configured.',
    fr: 'Le paiement n’est pas configuré.',
  },
  mail_not_configured: {
    en: 'Mail is not configured. Set mail.smtp in gateway.yaml.',
    fr: 'L’envoi de courriels n’est pas configuré. Définissez mail.smtp dans gateway.yaml.',
  },
  admin_unauthorized: {
    en: 'You are not signed in, or the browser sent no valid origin.',
    fr: 'Vous n’êtes pas connecté, ou le navigateur n’a pas envoyé d’origine valide.',
  },
  admin_forbidden: { en: 'Your role does not allow this.', fr: 'Votre rôle ne le permet pas.' },
  admin_disabled: {
    en: 'Administration is disabled: no admin token is configured.',
    fr: 'L’administration est désactivée : aucun jeton n’est configuré.',
  },
}

/**
 * @param code the value of `X-Peage-Error`
 * @returns undefined for an unknown code
 */
export function sentenceOf(code: string): Bilingual | undefined {
  return Object.hasOwn(sentences, code) ? sentences[code as Code] : undefined
}
