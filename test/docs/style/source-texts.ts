// Extracts the English texts of a source file: comments, string literals and JSX text.
import { parseSync } from 'oxc-parser'
import type { Text } from './text.ts'

interface Node {
  type: string
  start: number
  [key: string]: unknown
}

interface Comment {
  type: 'Line' | 'Block'
  value: string
  start: number
  end: number
}

const directive = /^[\s*]*(?:biome-ignore|@ts-|@vitest|eslint|\/ <|[#@]__|v8 ignore|!)/
const minimumWords = 4

/** @throws an error if the file cannot be parsed */
export function sourceTexts(file: string, source: string): Text[] {
  const { program, comments, errors } = parseSync(file, source)
  if (errors[0] !== undefined) throw new Error(`${file}: ${errors[0].message}`)
  return [...commentTexts(comments, source), ...stringTexts(program as unknown as Node)].map(
    ({ at, value }) => ({ line: source.slice(0, at).split('\n').length, value }),
  )
}

interface Found {
  at: number
  value: string
}

function commentTexts(comments: readonly Comment[], source: string): Found[] {
  const blocks: (Found & { end: number })[] = []
  for (const { type, value, start, end } of comments) {
    if (directive.test(value)) continue
    const last = blocks.at(-1)
    const text = type === 'Line' ? value.replace(/^ /, '') : value.replace(/^[ \t]*\* ?/gm, '')
    const isNext = last !== undefined && type === 'Line' && /^\n[ \t]*$/.test(source.slice(last.end, start))
    if (isNext) Object.assign(last, { value: `${last.value}\n${text}`, end })
    else blocks.push({ at: start, value: text, end })
  }
  // Removes diagrams, columns and indented code, which are not sentences.
  return blocks.map(({ at, value }) => ({
    at,
    value: value.replace(/^(?: {4}.*|.*\S {3,}\S.*|```.*)$/gm, ''),
  }))
}

function stringTexts(program: Node): Found[] {
  const found: Found[] = []
  visit(program)
  return found.filter(({ value }) => isProse(value))

  function visit(node: Node): void {
    if (/^(?:Import|ExportAll|TSLiteralType|TaggedTemplate)/.test(node.type)) return
    const value = stringOf(node)
    if (value !== undefined) found.push({ at: node.start, value })
    if (value !== undefined && node.type !== 'TemplateLiteral') return
    for (const child of Object.values(node).flat()) if (isNode(child)) visit(child)
  }
}

/** Returns the text of a literal, a template or a concatenation. Expressions are replaced by `…`. */
function stringOf(node: Node): string | undefined {
  if (node.type === 'Literal' && typeof node.value === 'string') return node.value
  if (node.type === 'JSXText') return node.value as string
  if (node.type === 'TemplateLiteral') {
    return (node.quasis as { value: { cooked: string } }[]).map(({ value }) => value.cooked).join('…')
  }
  if (node.type !== 'BinaryExpression' || node.operator !== '+') return undefined
  const [left, right] = [stringOf(node.left as Node), stringOf(node.right as Node)]
  return left === undefined && right === undefined ? undefined : `${left ?? '…'}${right ?? '…'}`
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value
}

const french =
  /[àâçéèêëîïôùûœ]|\b(?:le|la|les|des|du|une|est|sont|vous|votre|vos|pour|sur|dans|avec|pas|cette?)\b/gi
const sql =
  /^\s*(?:select|insert into|update \S+ (?:\w+ )?set|delete from|with \w+ as|(?:create|alter|drop) (?:[a-z]+ )*(?:table|index|function|trigger|schema|database|role|type|view)|lock table|set \S+ (?:=|to)|grant .* on|explain \(|copy \S+ (?:from|to))\b/i
const code = /[{};=]\s*$|=>|^\s*[-#<{[]|^\s*[\w.-]+:(?: .*)?\n|\n\s*[\w.-]+:(?: |\n|$)|\\|\b\w+\(\)/m

/**
 * Returns whether the string is an English text for people. Other strings are, for example, code, SQL, headers or
 * French texts.
 */
function isProse(value: string): boolean {
  const words = value.split(/\s+/).filter(word => word !== '')
  const plain = words.filter(word => /^[("'“‘`[]?[A-Za-z][A-Za-z'’-]*[)"'”’`\]]?[.,:;?!]*[)"'”]?$/.test(word))
  if (plain.length < minimumWords || plain.length < words.length * 0.6) return false
  if (plain.filter(word => /^\W?[a-z]/.test(word)).length < plain.length / 2) return false
  if ((value.match(french)?.length ?? 0) >= 2) return false
  return !sql.test(value) && !code.test(value)
}
