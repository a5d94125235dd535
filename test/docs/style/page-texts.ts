// Extracts the texts of a Markdown page: paragraphs, headings and cells of tables, without code.
import { fromMarkdown } from 'mdast-util-from-markdown'
import { gfmTableFromMarkdown } from 'mdast-util-gfm-table'
import { gfmTable } from 'micromark-extension-gfm-table'
import type { Text } from './text.ts'

interface Node {
  type: string
  value?: string
  children?: Node[]
  position?: { start: { line: number } }
}

export function pageTexts(page: string): Text[] {
  const texts: Text[] = []
  visit(fromMarkdown(page, { extensions: [gfmTable()], mdastExtensions: [gfmTableFromMarkdown()] }) as Node)
  return texts

  function visit(node: Node): void {
    const line = node.position?.start.line ?? 1
    if (node.type === 'paragraph' || node.type === 'heading') {
      texts.push({
        line,
        value: contentOf(node),
        ...(node.type === 'heading' && { kind: 'heading' as const }),
      })
    } else if (node.type === 'table') {
      const [head, ...rows] = node.children ?? []
      for (const cell of head?.children ?? []) texts.push({ line, value: contentOf(cell), kind: 'heading' })
      for (const row of rows) {
        const at = row.position?.start.line ?? line
        for (const cell of row.children ?? []) texts.push({ line: at, value: contentOf(cell), kind: 'cell' })
      }
    } else for (const child of node.children ?? []) visit(child)
  }
}

function contentOf({ type, value = '', children = [] }: Node): string {
  if (type === 'inlineCode') return `\`${value}\``
  if (type === 'text') return value
  if (type === 'break') return '\n'
  return children.map(contentOf).join('')
}
