// One attack: the bytes of a mutated request, and the kinds of its mutations.
import fc from 'fast-check'
import { credentialLines, fieldLines } from './field-mutations.ts'
import { corpusBytes, framing, noBody, smuggled } from './framing-mutations.ts'
import { mutateBytes, operations } from './operations.ts'
import { place, target } from './path-mutations.ts'

export interface Attack {
  /**
   * The mutated parts: `path`, `fields`, `framing`, `bytes`, two of them joined with `+`, or `three or more`. `corpus`
   * stands for a mutated attack from the corpus.
   */
  readonly kind: string
  /** The request in latin1. Names in angle brackets stand for credentials (see arena.ts). */
  readonly text: string
  /** The offset at which the attack is split into two writes. With 0, it is sent in one write. */
  readonly cut: number
}

const methods = [
  'GET',
  'GET',
  'GET',
  'POST',
  'POST',
  'PUT',
  'DELETE',
  'PATCH',
  'HEAD',
  'OPTIONS',
  'TRACE',
  'PROPFIND',
]
/**
 * The header lines to add: usually none, sometimes a WebSocket handshake. The upstream never responds with 101, so the
 * gateway must never open a tunnel.
 */
const handshakes = [
  [],
  [],
  [],
  [],
  [],
  [],
  [
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${'A'.repeat(22)}==`,
  ],
  ['Connection: keep-alive, upgrade', 'Upgrade: WebSocket', 'Sec-WebSocket-Version: 13'],
]
const versions = [
  'HTTP/1.1',
  'HTTP/1.0',
  'HTTP/0.9',
  'HTTP/1.2',
  'HTTP/2.0',
  'http/1.1',
  'HTTP/1.1 ',
  'HTTP/1,1',
  '',
]
const followers = [
  '',
  '',
  '',
  smuggled,
  'GET /public/next HTTP/1.1\r\nHost: gw.test\r\n\r\n',
  '\r\n\r\n',
  '\0',
  'x',
]

/**
 * The parts of a request that are mutated, as a bit mask with one bit for each part. Usually one part is mutated,
 * sometimes several.
 */
const parts = fc.constantFrom(1, 1, 1, 2, 2, 2, 4, 4, 4, 8, 3, 5, 6, 7, 10, 12, 15)
const [inPath, inFields, inFraming, inBytes] = [1, 2, 4, 8]

const composed = fc
  .record({
    parts,
    method: fc.constantFrom(...methods),
    mutated: target,
    place,
    version: fc.oneof({ weight: 15, arbitrary: fc.constant('HTTP/1.1') }, fc.constantFrom(...versions)),
    credentials: credentialLines,
    handshake: fc.constantFrom(...handshakes),
    fields: fieldLines,
    framing,
    follower: fc.constantFrom(...followers),
    steps: operations(3),
    cut: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.nat(400)),
  })
  .map(pick => {
    const has = (part: number) => (pick.parts & part) !== 0
    const { lines, body } = has(inFraming) ? pick.framing : noBody
    const head = [
      `${pick.method} ${has(inPath) ? pick.mutated : pick.place} ${pick.version}`.trimEnd(),
      'Host: gw.test',
      ...pick.credentials,
      ...(has(inFields) ? [...pick.handshake, ...pick.fields] : []),
      ...lines,
    ]
    const text = `${head.join('\r\n')}\r\n\r\n${body}${has(inFraming) || has(inBytes) ? pick.follower : ''}`
    const names = ['path', 'fields', 'framing', 'bytes'].filter((_, i) => has(1 << i))
    return {
      kind: names.length > 2 ? 'three or more' : names.join('+'),
      text: has(inBytes) ? mutateBytes(text, pick.steps) : text,
      cut: pick.cut,
    }
  })

const fromCorpus = fc
  .record({ text: corpusBytes, steps: operations(3), cut: fc.constantFrom(0, 0, 30) })
  .map(({ text, steps, cut }) => ({ kind: 'corpus', text: mutateBytes(text, steps), cut }))

export const attack: fc.Arbitrary<Attack> = fc.oneof(
  { weight: 7, arbitrary: composed },
  { weight: 1, arbitrary: fromCorpus },
)
