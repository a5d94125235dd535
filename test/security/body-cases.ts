// Adds request bodies to those in the corpus, with other shapes and types, and with invalid characters in other places.
import { type BodyAttack, corpus, type Expectation } from './corpus.ts'

export const password = '12345678'
const emailInvalid = { status: 400, body: { error: 'Email invalide' } }
const tooShort = { status: 400, body: { error: 'Mot de passe trop court (min 8 caractères)' } }
const tooLong = { status: 400, body: { error: 'Mot de passe trop long (max 1024 caractères)' } }
const missing = { status: 400, body: { error: 'Email et mot de passe requis' } }
const wrong = { status: 401, body: { error: 'Identifiants invalides' } }
const noToken = { status: 400, body: { error: 'refresh_token manquant' } }
const badToken = { status: 401, body: { error: 'Refresh token invalide ou expiré' } }
const inactiveToken = { status: 401, body: { error: 'Refresh token invalide, révoqué ou expiré' } }
const tooLarge = { status: 413, body: { error: 'Requête trop volumineuse' } }
const created = { status: 201, keys: ['message', 'user_id'] }
const loggedOut = { status: 200, body: { message: 'Déconnexion réussie' } }
const pair = {
  status: 200,
  keys: ['access_token', 'refresh_token', 'token_type', 'plan'],
  token_type: 'Bearer',
}

/** The expected response of each endpoint to an empty JSON object. */
const toNothing: Record<string, Expectation> = {
  register: emailInvalid,
  login: missing,
  refresh: noToken,
  logout: loggedOut,
}

let numbered = 0
export function body(
  endpoint: string,
  sent: unknown,
  expected: Expectation,
  headers = {},
  type = 'application/json',
) {
  numbered += 1
  const text = typeof sent === 'string' ? sent : JSON.stringify(sent)
  const attack: BodyAttack = {
    id: `more-${numbered}`,
    desc: text.length > 60 ? `${text.slice(0, 60)}…` : text,
    endpoint: `/api/v1/auth/${endpoint}`,
    method: 'POST',
    content_type: type,
    headers,
    body: text,
    expect: expected,
  }
  return attack
}

const shapes = [
  '',
  '\n\t \r',
  'null',
  'false',
  '0',
  '-1e999',
  '""',
  '"{\\"email\\":\\"a@b.c\\"}"',
  '[]',
  '[{}]',
  '{',
  '}',
  '{}}',
  '{} {}',
  '{"email":"a@b.c","password":"12345678","refresh_token":"x"',
  '{"email":undefined}',
  '{"email":"a@b.c\n","password":"12345678","refresh_token":"x"}',
  '{email:"a@b.c"}',
  '{"email":Infinity}',
  '{"email":"a@b.c","password":"12345678","refresh_token":"x"} //',
  '\ufeff{}',
  '\u0000{}',
  '{"email":"\\x61@b.c","password":"12345678","refresh_token":"x"}',
  '{"email":01,"refresh_token":01}',
  'email: a@b.c\npassword: "12345678"\nrefresh_token: x\n',
  '@repeat("{\\"a\\":",10000)',
  '@repeat("[",60000)',
  '@json_pad(65536)',
  '{"Email":"a@b.c","Password":"12345678","Refresh_Token":"x","refreshToken":"x"}',
  '{"__proto__":{"email":"a@b.c","password":"12345678","refresh_token":"x"}}',
  '{"constructor":{"prototype":{"email":"a@b.c"}},"toString":1,"hasOwnProperty":1}',
]

const more: BodyAttack[] = [
  ...Object.entries(toNothing).flatMap(([endpoint, expected]) => [
    ...shapes.map(shape => body(endpoint, shape, expected)),
    body(endpoint, '@json_pad(65537)', tooLarge),
    body(endpoint, '@chunked_json_pad(65537)', tooLarge),
    body(endpoint, '@chunked_json_pad(65536)', expected),
    body(endpoint, '@chunked_json_pad(4194304)', tooLarge),
    body(endpoint, '@announce(9007199254740991)', tooLarge),
    body(endpoint, '{}', expected, { 'content-encoding': 'br' }),
    body(endpoint, '{}', expected, { 'content-type#2': 'multipart/form-data' }, ''),
    body(endpoint, 'a=1&email=a%40b.c', expected, {}, 'application/x-www-form-urlencoded'),
    body(
      endpoint,
      '--x\r\nContent-Disposition: form-data; name="email"\r\n\r\na@b.c\r\n--x--\r\n',
      expected,
      {},
      'multipart/form-data; boundary=x',
    ),
  ]),
  ...[
    [null, password, emailInvalid],
    [['m1@example.com'], password, emailInvalid],
    [{ toString: 'm1@example.com' }, password, emailInvalid],
    ['m1@example.com', 12345678, tooShort],
    ['m1@example.com', { length: 9 }, tooShort],
    ['m1@example.com', ['12345678'], tooShort],
    ['nobody', '1', emailInvalid],
    ['m2\u0000@example.com', password, emailInvalid],
    ['m2@example.com\u0007', password, emailInvalid],
    ['m2\u0085x@example.com', password, emailInvalid],
    ['m2\ud800@example.com', password, emailInvalid],
    ['m2\udc00\ud800@example.com', password, emailInvalid],
    [`${'é'.repeat(243)}@example.com`, password, emailInvalid],
    ['m3@example.com', '1234567\ud800', tooShort],
    ['m3@example.com', '😀'.repeat(7), tooShort],
    ['m3@example.com', 'é'.repeat(1025), tooLong],
    ['m3@example.com', '😀'.repeat(1025), tooLong],
    ['m4@example.com', '😀'.repeat(1024), created],
    ['m5@example.com', '\u0000'.repeat(8), created],
    ['m6@example.com', ' '.repeat(1024), created],
    ['\u00a0\u2003 M7@Example.COM \u3000\n', password, created],
    [`${'é'.repeat(242)}@example.com`, password, created],
    ['İm8@example.com', password, created],
    ["m9'); drop table users; --@example.com", password, created],
    ['m10@example.com; select pg_sleep(9)', password, created],
    ['m11+%00\\@example.com', password, created],
    ['m12@example.com\u2028', password, created],
    ['<script>m13@example.com</script>', password, created],
  ].map(([email, given, expected]) => body('register', { email, password: given }, expected as Expectation)),
  body('register', '{"email":"first@example.com","email":"m14@example.com","password":"12345678"}', created),
  body(
    'register',
    '{"email":"m15@example.com","password":"12345678","big":123456789012345678901234567890}',
    created,
  ),
  body(
    'register',
    { email: 'm16@example.com', password, plan: 'pro', id: 1, is_active: 0, daily_usage: -5 },
    created,
  ),
  ...[
    ['u@example.com', 'x'.repeat(60_000), wrong],
    ['u@example.com', '\ud800', wrong],
    ['u@example.com', ' 12345678', wrong],
    ['u@example.com', '12345678\n', wrong],
    ['u\u0000@example.com', password, wrong],
    ['\ud800', password, wrong],
    [`${'a'.repeat(50_000)}@example.com`, password, wrong],
    ['inactive2@example.com', password, wrong],
    ['inactive2@example.com', 'x', wrong],
    ['u@example.com', null, missing],
    [' ', ' ', missing],
    [{ $gt: '' }, { $gt: '' }, missing],
    ['%', password, wrong],
    ['\tU@EXAMPLE.com ', password, pair],
  ].map(([email, given, expected]) => body('login', { email, password: given }, expected as Expectation)),
  ...[
    ['$REVOKED_REFRESH', inactiveToken],
    ['$EXPIRED_RECORD', inactiveToken],
    ['$UNSTORED_REFRESH', inactiveToken],
    ['$INACTIVE_USER_REFRESH', { status: 401, body: { error: 'Utilisateur introuvable' } }],
    ['$NONE_ALG_REFRESH', badToken],
    ['$HS256_WITH_PUBLIC_KEY', badToken],
    ['$OTHER_TYP', badToken],
    ['$TAMPERED_SUB', badToken],
    ['$ACCESS_TOKEN', badToken],
    ['$VALID_REFRESH.', badToken],
    ['$VALID_REFRESH=', badToken],
    ['Bearer $VALID_REFRESH', badToken],
    ['$VALID_REFRESH\u0000', badToken],
    ['a'.repeat(5_000), badToken],
    ['..', badToken],
    ['eyJhbGciOiJub25lIn0..', badToken],
    ['é.é.é', badToken],
    [' \u00a0$VALID_REFRESH\n', pair],
    ['   ', noToken],
    [{ toString: 'x' }, noToken],
    [['$VALID_REFRESH'], noToken],
  ].map(([token, expected]) => body('refresh', { refresh_token: token }, expected as Expectation)),
  ...['$REVOKED_REFRESH', '$NONE_ALG_REFRESH', 'x'.repeat(60_000), '\ud800', ['x'], null].map(token =>
    body('logout', { refresh_token: token }, loggedOut),
  ),
  ...['register', 'login', 'refresh', 'logout'].flatMap(endpoint =>
    ['TRACE', 'OPTIONS', 'PROPFIND', 'QUERY', 'M-SEARCH', 'PUT', 'HEAD'].map(method => ({
      ...body(endpoint, '', { status: method === 'QUERY' ? [400, 405] : 405 }),
      method,
    })),
  ),
  ...['/api/v1/auth/register/x', '/api/v1/auth/nothing', '/api/v1/auth', '/api/v1/user/api-token/x'].map(
    endpoint => ({
      ...body('', '{}', { status: 404, body: { error: 'Route inconnue' } }),
      endpoint,
    }),
  ),
  ...[
    '/api/v1/auth/register;x',
    '/api/v1/auth/login%2f',
    '/api/v1/auth/./login',
    '/api/v1/auth/login%00',
  ].map(endpoint => ({
    ...body('', '{}', { status: 400, body: { error: 'Chemin invalide' } }),
    endpoint,
  })),
]

/**
 * These bodies consist of 100,000 brackets. They exceed the limit of 64 KiB, so they get a 413 and not the response
 * that the corpus expects.
 */
const overruled = new Map<string, Expectation>([
  ['body-49', tooLarge],
  ['body-107', tooLarge],
])

/** The attacks of the corpus and of this file. */
export const attacks: BodyAttack[] = [...corpus.bodies, ...more].map(attack => ({
  ...attack,
  expect: overruled.get(attack.id) ?? attack.expect,
}))
