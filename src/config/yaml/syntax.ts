// Parses a text as YAML, explains syntax errors, and resolves aliases.
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

/**
 * The codes of errors that affect only one value. After any other error, the parser guesses how the text continues, so
 * the errors after it are not reliable.
 */
const LOCAL_ERRORS = new Set(['BAD_SCALAR_START', 'BAD_DQ_ESCAPE', 'TAG_RESOLVE_FAILED', 'MULTIPLE_DOCS'])

/**
 * Returns all errors, sorted by offset, as `local`. Returns the first error that makes the rest of the text unreliable
 * as `fatal`.
 */
export function syntaxDiagnostics(
  text: string,
  document: Document,
): { fatal: Diagnostic | undefined; local: Diagnostic[] } {
  const all: (YAMLParseError | YAMLWarning)[] = [...document.errors, ...document.warnings]
  const fatal = all.find(error => !LOCAL_ERRORS.has(error.code))
  const local = all.map(error => toDiagnostic(text, error)).sort((a, b) => a.offset - b.offset)
  return { fatal: fatal && toDiagnostic(text, fatal), local }
}

/**
 * The maximum nesting depth. No real configuration is nested this deep. The composer is recursive, so a deeper text
 * could exhaust the stack.
 */
export const MAX_DEPTH = 100

/** @throws Unreadable if the text is nested too deep */
export function parseText(text: string): Document {
  // The schema is always `core`, even after a %YAML directive. Other schemas could turn texts into dates, sets or octal
  // numbers.
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

/** The error for a text that is nested too deep or has too many values. It becomes the only diagnostic of the file. */
export class Unreadable extends Error {
  readonly diagnostic: Diagnostic

  constructor(offset: number, message: string) {
    super(message)
    this.diagnostic = { offset, path: '', message }
  }
}

/** Throws as soon as the nesting is too deep, because a million open brackets would use a gigabyte of memory. */
function* tokensOf(text: string): Generator<CST.Token, void> {
  const parser = new Parser()
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme)
    // The first two entries of the stack are the document and its root value (level 0).
    if (parser.stack.length > MAX_DEPTH + 2) {
      throw new Unreadable(parser.stack.at(-1)?.offset ?? 0, `is nested more than ${MAX_DEPTH} levels deep`)
    }
  }
  yield* parser.end()
}

function toDiagnostic(text: string, error: YAMLParseError | YAMLWarning): Diagnostic {
  return { offset: error.pos[0], path: '', message: `invalid YAML: ${sentenceOf(text, error)}` }
}

/**
 * Maps each alias to its target: the last node before the alias that has the same anchor. The function of the library
 * is not used, because it searches the whole document for each alias.
 */
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
