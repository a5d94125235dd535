// Mutates an input: changes bytes or lines, and inserts words of the dictionary or pieces of other inputs.
import { oneOf, type Random } from '../../../support/random.ts'

export interface Materials {
  readonly dictionary: readonly string[]
  /** Other inputs to take pieces from. */
  readonly others: readonly string[]
  readonly maxLength: number
}

/** Applies one or more random steps. A step may have no effect. */
export function mutate(input: string, materials: Materials, random: Random): string {
  let text = input
  do {
    text = oneOf(steps, random)(text, materials, random)
  } while (random(3) > 0)
  return text.slice(0, materials.maxLength)
}

type Step = (text: string, materials: Materials, random: Random) => string

const steps: readonly Step[] = [
  (text, _, random) => put(text, String.fromCharCode(random(256)), 0, random),
  (text, _, random) => put(text, String.fromCharCode(random(256)), 1, random),
  (text, _, random) => put(text, oneOf(notable, random), random(2), random),
  (text, _, random) => flipped(text, random),
  (text, { dictionary }, random) => put(text, oneOf(dictionary, random), 0, random),
  (text, { dictionary }, random) => put(text, oneOf(dictionary, random), 1 + random(8), random),
  (text, _, random) => put(text, '', 1 + random(4), random),
  (text, _, random) => put(text, '', 1 + random(40), random),
  (text, _, random) => put(text, pieceOf(text, random), 0, random),
  (text, { others }, random) => put(text, pieceOf(oneOf(others, random), random), random(2) * 8, random),
  (text, { others }, random) => {
    const other = oneOf(others, random)
    return text.slice(0, random(text.length + 1)) + other.slice(random(other.length + 1))
  },
  (text, _, random) =>
    put(
      text,
      pieceOf(text, random)
        .slice(0, 4)
        .repeat(1 + random(60)),
      0,
      random,
    ),
  inLines,
  otherNumber,
]

const notable = ['\0', '\t', '\n', '\r', ' ', '%', '/', '\\', '.', ';', ',', ':', '"', '\x7f', '\x80', '\xff']

function put(text: string, piece: string, instead: number, random: Random): string {
  const at = random(text.length + 1)
  return text.slice(0, at) + piece + text.slice(at + instead)
}

function pieceOf(text: string, random: Random): string {
  const from = random(text.length + 1)
  return text.slice(from, from + 1 + random(24))
}

function flipped(text: string, random: Random): string {
  if (text === '') return text
  const at = random(text.length)
  return text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ (1 << random(8))) + text.slice(at + 1)
}

/** Duplicates, removes or moves a random line. */
function inLines(text: string, _: Materials, random: Random): string {
  const lines = text.split('\n')
  const [at, to] = [random(lines.length), random(lines.length)]
  const line = lines[at] as string
  const what = random(3)
  if (what !== 0) lines.splice(at, 1)
  if (what !== 1) lines.splice(to, 0, line)
  return lines.join('\n')
}

function otherNumber(text: string, _: Materials, random: Random): string {
  const found = [...text.matchAll(/\d+/g)]
  if (found.length === 0) return text
  const { index, 0: number } = oneOf(found, random)
  const others = [
    '0',
    '-1',
    '1',
    '00',
    '65535',
    '65536',
    '4294967296',
    '9007199254740993',
    '1e9',
    `${number}0`,
  ]
  return text.slice(0, index) + oneOf(others, random) + text.slice(index + number.length)
}
