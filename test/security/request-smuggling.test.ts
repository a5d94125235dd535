// Sends bytes that two servers could split into different requests (RFC 9112 §11.2, corpus `raw_requests`).
import { describe, expect, it } from 'vitest'
import { embeddedSetup } from '../support/setups.ts'
import { corpus, expand, guarded, type RawAttack } from './corpus.ts'
import { closing, expectRefusal } from './invariants.ts'
import { type RawAnswer, RawConnection, value } from './raw-client.ts'
import { stage } from './stage.ts'

const smuggled = `GET ${guarded} HTTP/1.1\r\nHost: gw.test\r\nX-User-Id: 999999\r\n\r\n`
const post = (lines: string, body: string) =>
  `POST /public/echo HTTP/1.1\r\nHost: gw.test\r\n${lines}\r\n\r\n${body}`

const rejected = (desc: string, raw: string): RawAttack => ({
  id: 'more',
  desc,
  raw,
  expect: ['rejected_4xx', 'connection_closed'],
  note: '',
})
const forwarded = (desc: string, raw: string): RawAttack => ({
  ...rejected(desc, raw),
  expect: ['forwarded_safely'],
})

const odd = [
  'Transfer-Encoding: xchunked',
  'Transfer-Encoding: x, chunked',
  'Transfer-Encoding: chunked, identity',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding: chunked;q=1',
  'Transfer-Encoding: "chunked"',
  'Transfer-Encoding: chu\tnked',
  'Transfer-Encoding: chunked\x0b',
  'Transfer-Encoding: \x0cchunked',
  'Transfer-Encoding: identity',
  'Transfer-Encoding: gzip',
  'Transfer-Encoding: cow',
  'Transfer-Encoding:',
  'Transfer-Encoding: ,chunked',
  'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked',
  'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity',
  'Transfer-Encoding: chunked\r\nTransfer-encoding: cow',
  'Transfer-Encoding\t: chunked',
  'Transfer-Encoding\r\n : chunked',
  'Transfer-Encoding: \xa0chunked',
  'Transfer-Encoding: chunked\0',
  '\0Transfer-Encoding: chunked',
]

const more: RawAttack[] = [
  ...odd.map(line =>
    rejected(`${line} and a length`, post(`${line}\r\nContent-Length: 4`, `0\r\n\r\n${smuggled}`)),
  ),
  ...odd
    .filter(line => !line.startsWith('\0'))
    .map(line => rejected(`${line} without a length`, post(line, `0\r\n\r\n${smuggled}`))),
  ...[
    '+5',
    '0x5',
    '5,5',
    '5 5',
    '5;5',
    '1e1',
    '٥',
    '5\x0b',
    '',
    ' ',
    '18446744073709551621',
    '9007199254740993',
    '-0',
    '5\r\nContent-Length: 0',
    '0\r\nContent-Length: 5',
    '5\r\ncontent-length: 5',
  ].map(length =>
    rejected(`Content-Length: ${length}`, post(`Content-Length: ${length}`, `AAAAA${smuggled}`)),
  ),
  rejected(
    'HTTP/1.0 with a chunked body',
    `POST /public/echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
  ),
  ...[
    ['a sign', '+5\r\nAAAAA\r\n0\r\n\r\n'],
    ['0x', '0x5\r\nAAAAA\r\n0\r\n\r\n'],
    ['a bare LF', '5\nAAAAA\n0\n\n'],
    ['a bare LF after the data', '5\r\nAAAAA\n0\r\n\r\n'],
    ['a bare LF at the end', '5\r\nAAAAA\r\n0\n\n'],
    ['no end of line after the data', '5\r\nAAAAA0\r\n\r\n'],
    ['a bare CR in an extension', '5;a\rb\r\nAAAAA\r\n0\r\n\r\n'],
    ['a NUL in an extension', '5;a=\0\r\nAAAAA\r\n0\r\n\r\n'],
    ['an invalid digit', 'g\r\nAAAAA\r\n0\r\n\r\n'],
    ['a leading space', ' 5\r\nAAAAA\r\n0\r\n\r\n'],
    ['too little data', '6\r\nAAAAA\r\n0\r\n\r\n'],
  ].map(([name, body]) =>
    rejected(`a chunk with ${name}`, post('Transfer-Encoding: chunked', body as string)),
  ),
  rejected('a trailer without a colon', post('Transfer-Encoding: chunked', '0\r\nX\r\n\r\n')),
  rejected('a folded trailer', post('Transfer-Encoding: chunked', '0\r\nX: 1\r\n y\r\n\r\n')),
  rejected('an HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  rejected('HTTP/1.2', 'GET /public/x HTTP/1.2\r\nHost: gw.test\r\n\r\n'),
  rejected('HTTP/0.9 by number', 'GET /public/x HTTP/0.9\r\n\r\n'),
  rejected('HTTP/2.0 by number', 'GET /public/x HTTP/2.0\r\nHost: gw.test\r\n\r\n'),
  rejected('http in small letters', 'GET /public/x http/1.1\r\nHost: gw.test\r\n\r\n'),
  rejected('no Host', 'GET /public/x HTTP/1.1\r\n\r\n'),
  rejected('a tab instead of a space', 'GET\t/public/x\tHTTP/1.1\r\nHost: gw.test\r\n\r\n'),
  rejected('an unknown method', 'BANANA /public/x HTTP/1.1\r\nHost: gw.test\r\n\r\n'),
  rejected('a method in small letters', 'get /public/x HTTP/1.1\r\nHost: gw.test\r\n\r\n'),
  rejected('a TLS hello', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'),
  rejected('a bare LF after every line', 'GET /public/x HTTP/1.1\nHost: gw.test\n\n'),
  rejected('a bare LF at the end of the head', 'GET /public/x HTTP/1.1\r\nHost: gw.test\r\n\n'),
  rejected('a bare CR at the end of a field', 'GET /public/x HTTP/1.1\r\nHost: gw.test\rX: y\r\n\r\n'),
  rejected('a folded first field', 'GET /public/x HTTP/1.1\r\n Host: gw.test\r\n\r\n'),
  forwarded('chunk sizes with zeros', post('Transfer-Encoding: chunked', '0005\r\nAAAAA\r\n000\r\n\r\n')),
  forwarded('a chunk extension', post('Transfer-Encoding: chunked', '5;a=b;c="d"\r\nAAAAA\r\n0\r\n\r\n')),
  forwarded('a request in the body', post(`Content-Length: ${smuggled.length}`, smuggled)),
  forwarded('Content-Length 0 and another request', post('Content-Length: 0', smuggled)),
  forwarded(
    'Content_Length and Content-Length',
    post('Content_Length: 0\r\nContent-Length: 5', `AAAAA${smuggled}`),
  ),
  forwarded(
    'Transfer_Encoding and Content-Length',
    post('Transfer_Encoding: chunked\r\nContent-Length: 5', `0\r\n\r\n${smuggled}`),
  ),
  forwarded('HTTP/1.0 without Host', 'GET /public/x HTTP/1.0\r\n\r\n'),
  forwarded(
    'DELETE with a body',
    `DELETE /public/x HTTP/1.1\r\nHost: gw.test\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
  ),
  forwarded(
    'five pipelined requests, the third guarded',
    [1, 2, 3, 4, 5]
      .map(n => `GET ${n === 3 ? guarded : '/public'}/${n} HTTP/1.1\r\nHost: gw.test\r\n\r\n`)
      .join(''),
  ),
]

/** The attacks of the corpus and of this file. */
const attacks = [...corpus.raw_requests, ...more]

describe('requests as bytes', () => {
  const at = stage(embeddedSetup, { settings: { server: ', timeouts: { headers: 1s }' } })

  it.each(attacks)('$id: $desc has the outcome $expect', async attack => {
    const connection = new RawConnection(at.gateway.url)
    await connection.writeAll(Buffer.from(expand(attack.raw), 'latin1'))
    const answers = await connection.answers(attack.raw.split(' ', 1)[0])
    const [first] = answers
    if (first === undefined) throw new Error('no response')
    await at.holds(answers)

    const outcome = first.status < 400 ? 'forwarded_safely' : 'rejected_4xx'
    expect(attack.expect).toContain(outcome)
    if (outcome === 'rejected_4xx') {
      const code = expectRefusal(first)
      // After a malformed request, the connection must end, so that later bytes are not read as requests.
      if (closing.has(code)) {
        expect([answers.length, await connection.endsWithin(1_000)]).toEqual([1, true])
        expect(value(first, 'connection')).toBe('close')
      }
    }
    // The upstream received only the forwarded requests: no refused request, and no part of a body as a request.
    expect(at.upstream.seen.filter(seen => seen.complete)).toHaveLength(answers.filter(isForwarded).length)
    for (const answer of answers.filter(answer => !isForwarded(answer))) expectRefusal(answer)
    connection.close()
  })
})

const isForwarded = (answer: RawAnswer) => value(answer, 'x-upstream') !== undefined

it('the corpus has all 71 raw requests', () => {
  expect(corpus.raw_requests).toHaveLength(71)
})
