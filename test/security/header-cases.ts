// Header attacks in addition to the corpus: other spellings of names, Connection options and malformed lines.
import { corpus, type HeaderAttack } from './corpus.ts'
import { separators } from './spellings.ts'

const attack = (
  expect: string,
  desc: string,
  auth: HeaderAttack['auth'],
  ...lines: string[]
): HeaderAttack => ({
  id: desc,
  desc,
  lines,
  auth,
  expect,
})

const dropped = (...lines: string[]) => attack('dropped', lines.join(' | '), 'both', ...lines)
const rejected = (...lines: string[]) => attack('rejected_400', lines.join(' | '), 'both', ...lines)
const kept = (connection: string) =>
  attack('upstream STILL receives', `Connection: ${connection}`, 'valid', `Connection: ${connection}`)
const unauthorized = (...lines: string[]) => attack('401', lines.join(' | '), 'none', ...lines)
const untrusted = (...lines: string[]) =>
  attack('ignored by gateway unless peer in trust_proxy', lines.join(' | '), 'both', ...lines)

const words = [
  ['x', 'user', 'id'],
  ['X', 'User', 'Plan'],
  ['x', 'USER', 'email'],
  ['X', 'User', 'Key', 'Id'],
  ['x', 'user', 'scopes'],
  ['X', 'Peage', 'Assertion'],
]

const more: HeaderAttack[] = [
  ...words.flatMap(name =>
    [...separators, '._.'].map(separator => dropped(`${name.join(separator)}: 999999`)),
  ),
  ...['-x-user-id', 'x-user-id-', '_X_User_Id_', '~x.user-plan~', 'x---user___id', 'X-uSeR_pLaN'].map(name =>
    dropped(`${name}: 999999`),
  ),
  dropped('x-user-id:999999'),
  dropped('x-user-id:\t999999'),
  dropped('X-User-Id:', 'x-user-plan:'),
  dropped('x-user-id: 1', 'x_user_id: 2', 'x.user.id: 3', 'X-User-Plan: pro', 'x-user-plan: free'),
  dropped('X-User-Id: 999999', 'Connection: close'),
  dropped('X-User-Id: \xff\xfe'),
  kept('x-user-id'),
  kept('X-USER-ID'),
  kept('x-user-plan,x-user-id,keep-alive'),
  kept('close, x-user-id'),
  kept('upgrade, x-user-id, x-user-plan'),
  kept('x_user_plan'),
  kept('x-user-id;q=1'),
  kept(',,, x-user-id ,,'),
  kept('"x-user-plan"'),
  attack(
    'upstream STILL receives',
    'two Connection lines',
    'valid',
    'Connection: x-user-id',
    'Connection: x-user-plan',
  ),
  attack('upstream receives Host', 'Connection: Host, via', 'valid', 'Connection: Host, via'),
  attack('framing intact', 'Connection: content-length', 'valid', 'Connection: content-length'),
  attack('no crash', '__proto__', 'both', '__proto__: x'),
  attack('no crash', 'toString, valueOf', 'both', 'toString: x', 'valueOf: y', 'hasOwnProperty: z'),
  attack('no crash', 'Connection names __proto__', 'both', 'Connection: __proto__, constructor'),
  rejected('X-User-Id : 999999'),
  rejected('X User Id: 999999'),
  rejected('X-User-Id\xa0: 999999'),
  rejected('X-User-\xcfd: 999999'),
  rejected('X-Foo: a\0b'),
  rejected('X-Foo: a\nX-User-Id: 999999'),
  rejected('X-Foo: a', '\tX-User-Id: 999999'),
  rejected(' X-User-Id: 999999'),
  rejected('X-User-Id'),
  rejected('X-Foo: a\r'),
  rejected('(x-user-id): 999999'),
  rejected('"x-user-id": 999999'),
  rejected('x-user-id\x0b: 999999'),
  rejected('X-Foo: a\x7f'),
  rejected('X-Foo: \x1b[2J'),
  unauthorized('Authorization:'),
  unauthorized('Authorization: Bearer '),
  unauthorized('Authorization: Bearer undefined'),
  unauthorized('Authorization: Bearer x.y.z, Bearer <VALID>'),
  unauthorized('Authorization: <VALID>'),
  unauthorized('Authorization: Basic <VALID>'),
  unauthorized('Authorization: Bearer<VALID>'),
  unauthorized('Authorization: Bearer "<VALID>"'),
  unauthorized('Authorization: Bearer <VALID>x'),
  unauthorized('Authorization: Bearer <VALID> <VALID>'),
  unauthorized('Authorization: Bearer <REFRESH>'),
  unauthorized('Authorization_: Bearer <VALID>'),
  unauthorized('Proxy-Authorization: Bearer <VALID>'),
  unauthorized('X-Authorization: Bearer <VALID>'),
  unauthorized('Cookie: access_token=<VALID>; Authorization=Bearer <VALID>'),
  unauthorized('X-API-Key:    '),
  unauthorized('X-API-Key: <KEY>x'),
  unauthorized('X-API-Key: Bearer <KEY>'),
  unauthorized('X.API.Key: <KEY>'),
  unauthorized('X-Api_Key: <KEY>'),
  unauthorized('Api-Key: <KEY>'),
  unauthorized('X-API-Key: \xa0<KEY>'),
  attack(
    '400',
    'two Authorization headers, the second empty',
    'special',
    'Authorization: Bearer <VALID>',
    'Authorization:',
  ),
  attack(
    '400',
    'two equal Authorization headers',
    'special',
    'Authorization: Bearer <VALID>',
    'AUTHORIZATION: Bearer <VALID>',
  ),
  attack('400', 'two equal X-API-Key headers', 'special', 'X-API-Key: <KEY>', 'x-api-key: <KEY>'),
  ...[
    'X-Real-IP',
    'True-Client-IP',
    'X_Forwarded_For',
    'X-Cluster-Client-IP',
    'X.Real.IP',
    'Remote_User',
  ].map(name => untrusted(`${name}: 127.0.0.1`)),
  untrusted('Forwarded: for=127.0.0.1;host=evil.example;proto=https'),
  untrusted('X-Forwarded-Proto: https'),
  untrusted('X-Forwarded-Prefix: /admin'),
  untrusted('X_Forwarded_Host: evil.example'),
  untrusted('X-Original-URL: /api/v1/private'),
  untrusted('X-Rewrite-URL: /api/v1/private'),
  untrusted('X-HTTP-Method-Override: DELETE'),
  untrusted('X_HTTP_Method_Override: DELETE'),
  untrusted('Proxy: http://evil.example'),
  attack('no change of upstream', 'Host of another site', 'both', 'Host: 127.0.0.1:6379'),
  attack('no change of upstream', 'Host in capital letters', 'both', 'Host: GW.TEST.:8080'),
  rejected('Host: gw.test/x'),
  rejected('Host: gw.test#'),
  rejected('Host: gw.test evil.example'),
  rejected('Host: gw.test', 'host: gw.test'),
  rejected('Host: gw.test:80:80'),
  rejected('Host: \xe9vil.example'),
  attack(
    'rejected_431',
    '17 KiB of small headers',
    'both',
    ...Array.from({ length: 900 }, (_, i) => `X-Small-${i}: 1234`),
  ),
  attack('rejected_431', 'a header name of 20 KiB', 'both', `${'x'.repeat(20_000)}: 1`),
]

/** The attacks of the corpus and of this file. */
export const attacks: HeaderAttack[] = [...corpus.headers, ...more]
