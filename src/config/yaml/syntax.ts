// Parses a text as YAML: why it is not, in one sentence, and which node each alias stands for.
import {
  type Alias,
  Composer,
  type CST,
  type Document,
  Lexer,
  type Node,
  Parser,
  visit,
  YAMLParseError,
  type YAMLWarning,
} from 'yaml'
import type { Diagnostic } from '../diagnostics.ts'
import { sentenceOf } from './syntax-messages.ts'

/** Each spoils one value. From any other error the parser recovers by guessing; its further errors are echoes. */
const LOCAL_ERRORS = new Set(['BAD_SCALAR_START', 'BAD_DQ_ESCAPE', 'TAG_RESOLVE_FAILED', 'MULTIPLE_DOCS'])

/** All errors by offset (`local`), and the first after which nothing that follows can be relied upon (`fatal`). */
export function syntaxDiagnostics(
  text: string,
  document: Document,
): { fatal: Diagnostic | undefined; local: Diagnostic[] } {
  const all: (YAMLParseError | YAMLWarning)[] = [...document.errors, ...document.warnings]
  const fatal = all.find(error => !LOCAL_ERRORS.has(error.code))
  const local = all.map(error => toDiagnostic(text, error)).sort((a, b) => a.offset - b.offset)
  return { fatal: fatal && toDiagnostic(text, fatal), local }
}

/** Deeper than any configuration. The composer recurses, and would exhaust the stack. */
export const MAX_DEPTH = 100

/** @throws Unreadable if the text nests too deep */
export function parseText(text: string): Document {
  // The core schema, whatever a %YAML directive says: no dates, no sets, no octal surprises.
  const composer = new Composer({ schema: 'core', resolveKnownTags: false, uniqueKeys: false })
  let first: Document | undefined
  for (const document of composer.compose(tokensOf(text), true, text.length)) {
    first ??= document
    if (document === first) continue
    const [from, to] = document.range
    first.errors.push(new YAMLParseError([from, to], 'MULTIPLE_DOCS', ''))
    break
  }
  return first as Document
}

/** Nothing of the text can be relied upon, so this is its only diagnostic. */
export class Unreadable extends Error {
  readonly diagnostic: Diagnostic

  constructor(offset: number, message: string) {
    super(message)
    this.diagnostic = { offset, path: '', message }
  }
}

/** Stops if the text nests too deep: a million brackets would take a gigabyte. */
function* tokensOf(text: string): Generator<CST.Token, void> {
  const parser = new Parser()
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme)
    // The first two entries of the stack are the document and its value, which is level 0.
    if (parser.stack.length > MAX_DEPTH + 2) {
      throw new Unreadable(parser.stack.at(-1)?.offset ?? 0, `nests more than ${MAX_DEPTH} levels deep`)
    }
  }
  yield* parser.end()
}

function toDiagnostic(text: string, error: YAMLParseError | YAMLWarning): Diagnostic {
  return { offset: error.pos[0], path: '', message: `is not valid YAML: ${sentenceOf(text, error)}` }
}

/** Maps each alias to the last node before it with its anchor. The library itself searches again for every alias. */
export function resolveAliases(document: Document): Map<Alias, Node> {
  const anchored = new Map<string, Node>()
  const targets = new Map<Alias, Node>()
  visit(document, {
    Value(_, node) {
      if (node.anchor !== undefined) anchored.set(node.anchor, node)
    },
    Alias(_, alias) {
      const target = anchored.get(alias.source)
      if (target !== undefined) targets.set(alias, target)
    },
  })
  return targets
}
