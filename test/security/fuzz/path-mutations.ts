// Mutates request targets of the corpus: segments, escapes and authorities.
import fc from 'fast-check'
import { corpus } from '../corpus.ts'
import { type Operation, operations, pickFrom } from './operations.ts'

/** Paths of the arena, guarded and public. */
const places = [
  '/api/v1/private',
  '/api/v1/private/x',
  '/api/v1/pro/x',
  '/api/v1/daily/x',
  '/api/v1/sockets/x',
  '/api/v1/optional/x',
  '/public/x',
  '/',
  '/api/v1/x',
  '/.well-known/jwks.json',
]

const slashes = ['//', '\\', '%2f', '%2F', '%5c', '%252f', '%25252f', '/./', '/x/../', ';/', '/;x/', '%c0%af']
const tokens = [
  ...['.', '..', '...', '/./', '/../', '/..;/', '/.;/', '%2e', '%2E%2e/', '%252e', '%25252e%25252e%25252f'],
  ...['%c0%ae', '%e0%80%ae', '%ef%bc%8f', '%u002f', '%u002e', '%25u002e'],
  ...[';', ';x=1', '%3b', '%253b', '\\', '%5c', '..\\', '//', '/', '%2f', '%252f'],
  ...['%00', '%0a', '%0d%0a', '%09', '%20', '%7f', '%85', '%ff', '%', '%2', '%%32%65', '%25', '%2525'],
  ...[
    '?',
    '#',
    '%3f',
    '%23',
    '%253f',
    '\xa0',
    '\xe9',
    '\xc3\xa9',
    '\t',
    ' ',
    '@',
    ':',
    '*',
    '~',
    '$',
    '+',
    '|',
  ],
]
const fronts = [
  ...[
    '/public/..',
    '/public/%2e%2e',
    '/public/x/..;/..',
    '/public;/..',
    '/public\\..',
    '/public?',
    '/public#',
  ],
  ...['/.', '/', '//', '//evil.example', '\\', '*', 'gw.test', '/%2f', '/;', '/%20'],
  ...['http://gw.test', 'HTTP://GW.TEST:80', 'https://gw.test', 'http://evil.example', 'http://gw.test.'],
  ...['http://user@gw.test', 'http://gw.test@evil.example', 'http://gw.test\\', 'http://gw.test?', 'http:/'],
  ...['http://[::1]', 'http://', 'http:', 'ftp://gw.test', 'http://gw.test#', 'http://127.0.0.1:6379'],
]

/** The mutations of a request target. An operation selects one of them. */
const kinds: ((target: string, operation: Operation) => string)[] = [
  (target, { at, pick }) => splice(target, at, 1, encoded(charAt(target, at), pick)),
  (target, { at, pick }) =>
    target.replace(/[A-Za-z]/g, (c, i) => ((i + at) % (1 + (pick % 5)) ? c : flipped(c))),
  (target, { at, pick }) => replaceSlash(target, at, pickFrom(slashes, pick)),
  (target, { at, pick }) => splice(target, at, 0, pickFrom(tokens, pick)),
  (target, { pick }) => target + pickFrom(tokens, pick),
  (target, { pick }) => pickFrom(fronts, pick) + target,
  (target, { at }) => splice(target, at, 1, ''),
  (target, { at, pick }) => splice(target, at, 1, String.fromCharCode(pick % 256)),
  (target, { at, pick }) => {
    const end = at % (target.length + 1)
    const part = target.slice(end, end + (pick % 12))
    return splice(target, at, part.length, [...part].map(c => encoded(c, pick)).join(''))
  },
]

/** Generates a mutated request target in latin1. */
export const target: fc.Arbitrary<string> = fc
  .tuple(fc.constantFrom(...places, ...corpus.paths.map(attack => attack.raw_target)), operations(4))
  .map(([start, steps]) => mutateTarget(start, steps))
  .map(text => (/[^\0-\xff]/.test(text) ? Buffer.from(text).toString('latin1') : text))

export function mutateTarget(target: string, steps: readonly Operation[]): string {
  return steps.reduce((text, step) => (kinds[step.kind % kinds.length] ?? String)(text, step), target)
}

export const place: fc.Arbitrary<string> = fc.constantFrom(...places)

function splice(text: string, at: number, length: number, insertion: string): string {
  const position = at % (text.length + 1)
  return text.slice(0, position) + insertion + text.slice(position + length)
}

function charAt(text: string, at: number): string {
  return text.charAt(at % (text.length + 1))
}

/** Percent-encodes a character one to three times. */
function encoded(character: string, pick: number): string {
  if (character === '') return ''
  const hex = character.charCodeAt(0).toString(16).padStart(2, '0')
  return `%${'25'.repeat(Math.floor(pick / 2) % 3)}${pick % 2 === 0 ? hex : hex.toUpperCase()}`
}

function flipped(letter: string): string {
  return letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase()
}

function replaceSlash(target: string, at: number, replacement: string): string {
  const places = [...target.matchAll(/\//g)].map(match => match.index)
  const place = places[at % Math.max(1, places.length)]
  return place === undefined ? target + replacement : splice(target, place, 1, replacement)
}
