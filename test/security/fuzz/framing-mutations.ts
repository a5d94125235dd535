// Generates bodies and their framing: lengths, codings, chunks, trailers, and requests hidden in a body.
import fc from 'fast-check'
import { corpus } from '../corpus.ts'
import { type Operation, operations, pickFrom } from './operations.ts'

export interface Framing {
  /** The header lines that define where the body ends, for example `Content-Length`. They contain no line ends. */
  readonly lines: readonly string[]
  readonly body: string
}

export const smuggled = 'GET /api/v1/private HTTP/1.1\r\nHost: gw.test\r\nX-User-Id: 999999\r\n\r\n'

const contents = ['', 'five!', smuggled, `0\r\n\r\n${smuggled}`, '\r\n', 'x'.repeat(300)]

const lengths: ((exact: number) => string)[] = [
  exact => `${exact}`,
  exact => `${exact}`,
  exact => `${Math.max(0, exact - 3)}`,
  exact => `${exact + 5}`,
  exact => `0${exact}`,
  exact => `+${exact}`,
  exact => `${exact}, ${exact}`,
  exact => `${exact}\r\nContent-Length: ${exact}`,
  exact => `${exact}\r\nContent-Length: 0`,
  exact => ` ${exact} `,
  exact => `${exact};x`,
  exact => `0x${exact.toString(16)}`,
  exact => `${exact}\0`,
  () => '-1',
  () => '',
  () => '18446744073709551616',
  exact => `${exact}.0`,
]
const lengthNames = [
  'Content-Length',
  'Content-Length',
  'content-length',
  'Content_Length',
  'Content-Length ',
  ' Content-Length',
]

const codings = [
  ...[
    'chunked',
    'chunked',
    'Chunked',
    ' chunked ',
    '\tchunked',
    'chunked\t',
    'xchunked',
    'chunked, identity',
  ],
  ...['identity', 'identity, chunked', 'gzip, chunked', 'chunked, chunked', '"chunked"', 'chunked;q=1', ''],
  ...[
    'chunked\r\nTransfer-Encoding: identity',
    'cow\r\nTransfer-Encoding: chunked',
    '\x0bchunked',
    'chunked\0',
  ],
  ...[',chunked', 'chunked,', '\r\n chunked', '\xa0chunked', 'chu\tnked'],
]
const codingNames = [
  'Transfer-Encoding',
  'Transfer-Encoding',
  'transfer-encoding',
  'Transfer_Encoding',
  'Transfer-Encoding ',
  '\tTransfer-Encoding',
]

const extensions = [
  '',
  '',
  '',
  ';a=b',
  ';a="b;c"',
  ' ',
  ' ;a',
  ';\x0b',
  ';a\n',
  ';a\r',
  '\t',
  ';X-User-Id: 999999',
  ';\0',
]
const sizes: ((exact: number) => string)[] = [
  exact => exact.toString(16),
  exact => exact.toString(16),
  exact => exact.toString(16),
  exact => `000${exact.toString(16)}`,
  exact => `0x${exact.toString(16)}`,
  exact => `+${exact.toString(16)}`,
  exact => `-${exact.toString(16)}`,
  exact => (exact + 2).toString(16),
  exact => Math.max(0, exact - 2).toString(16),
  exact => `1000000000000000${exact.toString(16)}`,
  () => '',
  () => 'g',
]
const ends = ['\r\n', '\r\n', '\r\n', '\r\n', '\n', '\r', '', '\r\r\n']
const trailers = [
  ...['', '', 'X-User-Id: 999999\r\n', 'x_user_plan: pro\r\n', 'Content-Length: 100\r\n', 'X-Foo: bar\r\n'],
  ...[
    'Transfer-Encoding: chunked\r\n',
    'Authorization: Bearer <PREMIUM>\r\n',
    'X-Foo\r\n',
    'X: 1\r\n y\r\n',
    'Host: evil\r\n',
  ],
]

/** Returns the content in chunked coding. Most parts are valid, because the gateway stops at the first error. */
function chunks(content: string, steps: readonly Operation[]): string {
  const cut = content.length > 2 ? [content.slice(0, 2), content.slice(2)] : [content]
  const [first, second, last] = steps
  const coded = cut
    .filter(part => part !== '')
    .map((part, i) => {
      const { kind, at, pick } = (i === 0 ? first : second) ?? { kind: 0, at: 0, pick: 0 }
      const size = pickFrom(sizes, kind)(part.length)
      return `${size}${pickFrom(extensions, pick)}${pickFrom(ends, at)}${part}${pickFrom(ends, at >> 3)}`
    })
  const end =
    last === undefined ? '0\r\n\r\n' : `0\r\n${pickFrom(trailers, last.pick)}${pickFrom(ends, last.at)}`
  return coded.join('') + end
}

/** Generates a body with a length, a chunked coding, both or neither. The length and the coding can be invalid. */
export const framing: fc.Arbitrary<Framing> = fc
  .record({
    content: fc.constantFrom(...contents),
    by: fc.constantFrom('length', 'chunked', 'length', 'chunked', 'both', 'none'),
    length: fc.nat(lengths.length * lengthNames.length - 1),
    coding: fc.nat(codings.length * codingNames.length - 1),
    steps: operations(3),
    swapped: fc.boolean(),
  })
  .map(({ content, by, length, coding, steps, swapped }) => {
    const isChunked = by === 'chunked' || by === 'both'
    const body = isChunked ? chunks(content, steps) : content
    const exact = by === 'both' ? content.length : body.length
    const name = pickFrom(lengthNames, Math.floor(length / lengths.length))
    const coded = pickFrom(codingNames, Math.floor(coding / codings.length))
    const lines = [
      ...(by === 'length' || by === 'both' ? [`${name}: ${pickFrom(lengths, length)(exact)}`] : []),
      ...(isChunked ? [`${coded}: ${pickFrom(codings, coding)}`] : []),
    ]
    return { lines: swapped ? lines.reverse() : lines, body }
  })

export const noBody: Framing = { lines: [], body: '' }

/** Generates the raw requests of the corpus. Leaves out the huge requests, which other tests send. */
export const corpusBytes: fc.Arbitrary<string> = fc.constantFrom(
  ...corpus.raw_requests.map(attack => attack.raw).filter(raw => !/@x|…/.test(raw)),
)
