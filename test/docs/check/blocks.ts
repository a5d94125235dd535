// Parses the fenced blocks of a page. The info string of a fence declares the use of its block.
//
// ```sh                   run in order, by the same shell as the page's other `sh` blocks
// ```sh if: COMMAND       run if COMMAND succeeds; otherwise reported with the command and counted
// ```yaml                 a gateway.yaml or a part of it; must pass `peage check`
// ```js file: NAME        written to NAME before the shell runs; any language is allowed; yaml is also checked
// ```LANGUAGE norun: WHY  not run; counted, and reported with the reason
// ```text, ```mermaid     output or a diagram; not run
//
// A comment `<!-- docs:check … -->` contains shell lines that run in this check, but that the reader does not see.
import { readFileSync } from 'node:fs'

export interface Block {
  /** Path of the page, relative to the repository's root. */
  readonly page: string
  /** Line number of the opening fence. The first line of the page has the number 1. */
  readonly line: number
  readonly language: string
  readonly text: string
  readonly use: 'run' | 'text' | 'setup'
  /** The file to which the block is written, relative to the folder in which the commands of the page run. */
  readonly file?: string
  /** The reason why the block is not run. */
  readonly norun?: string
  /** The block runs only if this command succeeds. */
  readonly condition?: string
}

/** @throws an error with page and line if a fence does not declare a use or is not closed */
export function blocksOf(page: string, text = readFileSync(page, 'utf8')): Block[] {
  const blocks: Block[] = []
  const lines = text.split('\n')
  for (let at = 0; at < lines.length; at++) {
    const [, indent, fence, info = ''] = /^( *)(```|<!-- docs:check$)(.*)$/.exec(lines[at] ?? '') ?? []
    if (indent === undefined) continue
    const isSetup = fence !== '```'
    const closing = indent + (isSetup ? '-->' : fence)
    const end = lines.indexOf(closing, at + 1)
    if (end < 0) throw new Error(`${page}:${at + 1}: a block that is not closed`)
    const body = lines.slice(at + 1, end).map(line => line.slice(indent.length))
    const place = { page, line: at + 1, text: body.join('\n') }
    blocks.push(
      isSetup ? { ...place, language: 'sh', use: 'setup' } : { ...place, ...meaningOf(info, place) },
    )
    at = end
  }
  return blocks
}

const run = new Set(['sh', 'yaml'])

function meaningOf(
  info: string,
  { page, line }: { page: string; line: number },
): Omit<Block, 'page' | 'line' | 'text'> {
  const [, language = '', key, value = ''] = /^(\w*)(?: (norun|file|if): (.+))?$/.exec(info) ?? []
  const wrong = (why: string) => new Error(`${page}:${line}: \`\`\`${info}: ${why}`)
  if (language === '') throw wrong('no language: `sh`, `yaml`, `text` …, see test/docs/check/blocks.ts')
  if (key === 'if' && language !== 'sh') throw wrong('only `sh` blocks have conditions')
  if (key === 'norun') return { language, use: 'run', norun: value }
  if (key === 'file') return { language, use: 'run', file: value }
  if (key === 'if') return { language, use: 'run', condition: value }
  if (language === 'text' || language === 'mermaid') return { language, use: 'text' }
  if (!run.has(language)) throw wrong('nothing runs it: name a `file:`, or a reason as `norun:`')
  return { language, use: 'run' }
}
