// Says in one sentence what keeps a text from being YAML.
import { type CST, type Document, Parser, type YAMLParseError, type YAMLWarning } from 'yaml'
import type { Fault } from './problem.ts'

/** These spoil one value; of anything else the parser recovers by guessing, and its further errors are echoes. */
const LOCAL = new Set(['BAD_SCALAR_START', 'BAD_DQ_ESCAPE', 'TAG_RESOLVE_FAILED', 'MULTIPLE_DOCS'])

/** The first error after which nothing that follows can be relied upon, and those that stay where they are. */
export function syntaxFaults(text: string, document: Document): { fatal: Fault | undefined; local: Fault[] } {
  const all: (YAMLParseError | YAMLWarning)[] = [...document.errors, ...document.warnings]
  const fatal = all.find(error => !LOCAL.has(error.code))
  return { fatal: fatal && faultOf(text, fatal), local: all.map(error => faultOf(text, error)) }
}

/** Deeper than any configuration; what reads the tokens below recurses, and would exhaust the stack. */
export const DEEPEST = 100

/** Where the text nests too deep to be read. Walks the parser's tokens with a list of its own. */
export function nestingFault(text: string): Fault | undefined {
  const waiting: { token: CST.Token; depth: number }[] = []
  const wait = (depth: number, ...tokens: (CST.Token | null | undefined)[]) => {
    for (const token of tokens) if (token) waiting.push({ token, depth })
  }
  wait(0, ...new Parser().parse(text))
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { token, depth } = next
    if (depth > DEEPEST) {
      return { offset: token.offset, path: '', message: `nests more than ${DEEPEST} levels deep` }
    }
    if (token.type === 'document') wait(depth, token.value)
    if ('items' in token) for (const { key, value } of token.items) wait(depth + 1, key, value)
  }
  return undefined
}

function faultOf(text: string, error: YAMLParseError | YAMLWarning): Fault {
  return { offset: error.pos[0], path: '', message: `is not valid YAML: ${sentenceOf(text, error)}` }
}

/** The parser's sentence without what it quotes from the file, which may be a secret. */
function sentenceOf(text: string, { code, message, pos }: YAMLParseError | YAMLWarning): string {
  if (text.slice(pos[0] - 1, pos[0] + 1) === '${') return 'inside { } and [ ] put ${…} in quotes'
  if (code === 'MULTIPLE_DOCS') return 'a second document begins here; keep one'
  if (code === 'TAG_RESOLVE_FAILED') return 'tags (!…) have no meaning here'
  if (code === 'BAD_DQ_ESCAPE')
    return 'unknown escape after \\ (in single quotes \\ is an ordinary character)'
  const [sentence = ''] = message.split(/[:\n]/, 1)
  return sentence.charAt(0).toLowerCase() + sentence.slice(1)
}
