// Generates header lines for attacks. They forge an identity, send a credential in an unusual header, name gateway
// headers in `Connection`, or confuse parsers.
import fc from 'fast-check'
import { corpus } from '../corpus.ts'
import { separators } from '../spellings.ts'
import { mutateBytes, operations } from './operations.ts'

const words = fc.constantFrom(
  ['x', 'user', 'id'],
  ['x', 'user', 'plan'],
  ['x', 'user', 'email'],
  ['x', 'peage', 'assertion'],
  ['x', 'forwarded', 'for'],
  ['x', 'original', 'url'],
  ['x', 'rewrite', 'url'],
  ['x', 'http', 'method', 'override'],
  ['x', 'http', 'method'],
  ['x', 'method', 'override'],
  ['x', 'api', 'key'],
  ['content', 'length'],
  ['transfer', 'encoding'],
)
const separator = fc.constantFrom(...separators)

const spelled = fc
  .record({
    words,
    separators: fc.array(separator, { minLength: 3, maxLength: 3 }),
    capitals: fc.nat(4095),
    around: fc.constantFrom('', '', '', '-', '_'),
    value: fc.constantFrom(
      '999999',
      '1',
      'pro',
      '',
      ' 999999',
      'DELETE',
      '/api/v1/private',
      '5',
      'chunked',
      '\xff',
    ),
  })
  .map(({ words, separators, capitals, around, value }) => {
    const name = words.map((word, i) => (i === 0 ? '' : (separators[i - 1] ?? '-')) + word).join('')
    const cased = [...name].map((c, i) => (capitals & (1 << (i % 12)) ? c.toUpperCase() : c)).join('')
    return `${around}${cased}${around}: ${value}`
  })

const notable = [
  ...[
    'Connection: x-user-id',
    'Connection: X-User-Plan, close',
    'Connection: keep-alive, x-user-id, x-user-plan',
  ],
  ...[
    'Connection: host, via, x-forwarded-for',
    'Connection: content-length',
    'Connection: transfer-encoding',
  ],
  ...['Connection: authorization', 'Connection: close', 'Proxy-Connection: x-user-id', 'Keep-Alive: x'],
  ...[
    'TE: trailers',
    'Trailer: X-User-Id',
    'Upgrade: h2c',
    'Upgrade: websocket',
    'HTTP2-Settings: AAMAAABkAARAAAAA',
  ],
  ...['Connection: Upgrade, HTTP2-Settings', 'Connection: upgrade', 'Sec-WebSocket-Version: 13'],
  ...['Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', 'Sec-WebSocket-Protocol: peage.bearer.<TAMPERED>, chat'],
  ...[
    'Expect: 100-continue',
    'Expect: banana',
    'Host: gw.test',
    'Host: evil.example',
    'Host: gw.test:80@evil',
  ],
  ...['Forwarded: for=127.0.0.1', 'X-Forwarded-For: 127.0.0.1', 'X-Forwarded-For: 10.0.0.1, 10.0.0.2'],
  ...[
    'X-Forwarded-Host: evil.example',
    'X-Forwarded-Proto: https',
    'X-Forwarded-Prefix: /x',
    'X-Real-IP: 127.0.0.1',
  ],
  ...['X-Original-URL: /api/v1/private', 'X-Rewrite-URL: /api/v1/private', 'X-HTTP-Method-Override: DELETE'],
  ...[
    'Proxy: http://evil.example',
    'Proxy-Authorization: Bearer <PREMIUM>',
    'X-Request-Id: a b',
    'X-Request-Id: ok',
  ],
  ...[
    'X-Nginx-Location: public',
    'Cookie: a=b',
    'X-Foo: bar',
    '__proto__: x',
    'constructor: y',
    ': x',
    ' x: y',
    'x',
  ],
  ...[
    'Authorization: Bearer <TAMPERED>',
    'Authorization_: Bearer <PREMIUM>',
    'X_API_Key: <KEY>',
    'X-Peage-Error: internal',
  ],
]

/** The header lines of the corpus, except long ones, to save time. oversized-requests.test.ts sends long headers. */
const fromCorpus = corpus.headers
  .flatMap(attack => attack.lines)
  .filter(line => !/@x|…/.test(line))
  .map(line =>
    line.replaceAll('<VALID>', '<PREMIUM>').replaceAll('<OTHER>', '<PRO>').replaceAll('<INVALID>', 'x'),
  )

const line = fc
  .tuple(
    fc.oneof(spelled, spelled, fc.constantFrom(...notable), fc.constantFrom(...fromCorpus)),
    operations(1),
  )
  // Three of four lines stay unchanged. If every line were mutated, the gateway would refuse the request at the first
  // invalid line and never check the others.
  .chain(([text, steps]) => fc.nat(3).map(n => (n === 0 ? mutateBytes(text, steps) : text)))

/** Generates header lines as latin1 text, without the CRLF at the end of each line. */
export const fieldLines: fc.Arbitrary<string[]> = fc.array(line, { minLength: 1, maxLength: 4 })

/** Generates header lines with no credential, one or several. Placeholders such as `<PREMIUM>` are replaced later. */
export const credentialLines: fc.Arbitrary<readonly string[]> = fc.oneof(
  { weight: 5, arbitrary: fc.constant([]) },
  {
    weight: 5,
    arbitrary: fc.constantFrom(
      ...['PREMIUM', 'PRO', 'FREE'].map(name => [`Authorization: Bearer <${name}>`]),
      ['X-API-Key: <KEY>'],
      ['X-API-Key: \t<KEY> '],
      ['Sec-WebSocket-Protocol: peage.bearer.<PREMIUM>, chat'],
      ['authorization: bearer  <PREMIUM>'],
    ),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      ...['<TAMPERED>', '<UNSIGNED>', '<REFRESH>', 'x', ''].map(token => [`Authorization: Bearer ${token}`]),
      ['X-API-Key: peage_x'],
      ['X-API-Key: '],
      ['Authorization: Basic <PREMIUM>'],
      ['Authorization: Bearer <PREMIUM>', 'X-API-Key: <KEY>'],
      ['Authorization: Bearer <TAMPERED>', 'X-API-Key: <KEY>'],
      ['Authorization: Bearer <PREMIUM>', 'X-API-Key: bad'],
      ['Authorization: Bearer <PREMIUM>', 'Authorization: Bearer <PRO>'],
      ['Authorization: Bearer <PREMIUM>', 'authorization: Bearer <PREMIUM>'],
      ['Authorization: Bearer <PREMIUM>, Bearer <PRO>'],
      ['X-API-Key: <KEY>', 'X-Api-Key: <KEY>'],
      ['X-API-Key: <KEY>, bad'],
    ),
  },
)
