// Explains why a text is not valid YAML. Messages never quote the file, because it may contain secrets.
import type { YAMLParseError, YAMLWarning } from 'yaml'

type SyntaxError = Pick<YAMLParseError | YAMLWarning, 'code' | 'message' | 'pos'>

export function sentenceOf(text: string, error: SyntaxError): string {
  const { code, message, pos } = error
  const at = pos[0]
  if (text.slice(at - 1, at + 1) === '${') return 'inside { } or [ ], put ${…} in quotes'
  if (text.slice(at - 3, at + 1) === '://[') return 'inside { } or [ ], put an IPv6 address in quotes'
  if (code === 'BAD_ALIAS' && [text[at], text[at - 1]].includes('*')) return 'put * in quotes: "*"'
  if (code === 'MULTIPLE_DOCS') return 'a second YAML document starts here; keep only one'
  if (code === 'TAG_RESOLVE_FAILED') return 'tags (!…) are not supported'
  if (code === 'BAD_DQ_ESCAPE') return 'unknown escape after \\ (in single quotes, \\ is a normal character)'
  for (const [pattern, sentence] of sentences) {
    const match = pattern.exec(message)
    if (match !== null) return typeof sentence === 'string' ? sentence : sentence(text, at, match[1] ?? '')
  }
  return withoutQuotation(message)
}

type Sentence = string | ((text: string, at: number, part: string) => string)

/** The patterns match messages of the parser, because one of its error codes can mean several different mistakes. */
const sentences: readonly (readonly [RegExp, Sentence])[] = [
  [/^Tabs are not allowed/, 'the indentation contains a tab; use spaces'],
  [
    /^All (mapping|sequence) items must start/,
    (_text, _at, kind) =>
      `the indentation differs from the ${kind === 'mapping' ? 'keys' : 'items'} above; align this line with them`,
  ],
  [
    /^Sequence item without -/,
    'the indentation does not match the list above; align this line or start it with -',
  ],
  [/^Block scalars? .*(indent|leading)/, 'the lines of this text have different indentation; align them'],
  [/^Nested mappings are not allowed/, ofNestedMapping],
  [
    /^A block sequence may not be used/,
    'the indentation of this list does not match the value above; align the list or remove the value',
  ],
  [/^Implicit (map )?keys need to be/, 'the colon after this key is missing; write key: value'],
  [/^Missing closing (["'])/, (_text, _at, quote) => `the closing ${quote} of this text is missing`],
  [/at node end$/, ofTextAfterValue],
  [
    /^Plain value cannot start with .* (\W)$/,
    (_text, _at, character) => `a value that starts with ${character} must be in quotes`,
  ],
  [/end with a (.)$/, ofUnclosed],
  [/^Unexpected flow-map-end/, 'this } has no matching {; remove it or put the value in quotes'],
  [/^Unexpected flow-seq-end/, 'this ] has no matching [; remove it or put the value in quotes'],
  [/^Missing space after :/, 'the space after a colon is missing'],
  [/^Missing ,/, 'a comma is missing between two entries inside { } or [ ]'],
  [/^Unexpected (,|empty item)/, 'this comma follows no entry; remove the comma'],
  [
    /^Block collections are not allowed/,
    'a comma is missing inside { } or [ ], or a value with a colon is not in quotes',
  ],
  [/^Unexpected (double|single)-quoted-scalar/, 'a comma or a colon is missing before this text'],
  [/^Unexpected block-seq-ind on same line/, 'a list must start on the line after its key'],
  [/^Block scalar header includes/, 'the text after | or > must start on the next line'],
  [/^The : indicator must be at most/, 'this key is longer than 1024 characters'],
  [/^Comments must be separated/, 'the space before # is missing'],
]

/**
 * The parser reports the same error at the same place for two mistakes: a colon inside the value, and a next line that
 * is indented too deep.
 */
function ofNestedMapping(text: string, at: number): string {
  return /:(\s|$)/.test(lineAfter(text, at))
    ? 'this value contains a colon and a space; put the value in quotes'
    : 'the indentation of the line after this value is too deep; align it with this key'
}

function ofTextAfterValue(text: string, at: number): string {
  const before = text.slice(Math.max(0, at - mostLooked), at)
  const quote = before.trimEnd().at(-1) ?? ''
  if (quote !== '"' && quote !== "'") return 'this text does not belong to any value; correct its indentation'
  const line = before.slice(before.lastIndexOf('\n') + 1) + lineAfter(text, at)
  const inside = line.includes('://')
    ? 'percent-encode a quote in an address (" is %22 and \' is %27)'
    : `write ${quote === '"' ? '\\"' : "''"} for a quote inside the text`
  return `this text follows a closing ${quote}; ${inside}`
}

/** The maximum number of characters to search in each direction. A long line with many errors would take too long. */
const mostLooked = 500

function lineAfter(text: string, at: number): string {
  return text.slice(at, at + mostLooked).split('\n', 1)[0] ?? ''
}

function ofUnclosed(_text: string, _at: number, bracket: string): string {
  const opening = bracket === '}' ? '{' : '['
  return `the closing ${bracket} is missing, or a line after ${opening} is not indented`
}

/**
 * Matches the place where a message of the parser begins to quote the file. Usually, this is a colon directly after a
 * word. A colon after a space belongs to the message. Control characters are from the file, and could start a new line.
 */
const quotation = /(?<! ):|\p{Cc}|(?<=^Unknown directive|^Unsupported YAML version) /u

function withoutQuotation(message: string): string {
  const [sentence = ''] = message.split(quotation, 1)
  return sentence.charAt(0).toLowerCase() + sentence.slice(1)
}
