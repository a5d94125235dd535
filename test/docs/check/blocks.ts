// The fenced blocks of a page and what is to be done with each, as its fence's info string says.
//
// ```sh                   run in order, with the page's other `sh` blocks, by one shell
// ```sh if: COMMAND       run where COMMAND succeeds; else said, with the command, and counted
// ```yaml                 a gateway.yaml, or a part of one: `peage check` must find nothing
// ```js file: NAME        written to NAME before the shell runs, in any language; yaml is checked too
// ```LANGUAGE norun: WHY  not run: said, with the reason, and counted
// ```text, ```mermaid     what is printed or drawn: nothing to run
//
// A comment `<!-- docs:check … -->` holds lines for the shell that a reader has done already, or need not do.
import { readFileSync } from 'node:fs'

export interface Block {
  /** From the repository's root. */
  readonly page: string
  /** Of the fence, from 1. */
  readonly line: number
  readonly language: string
  readonly text: string
  readonly use: 'run' | 'text' | 'setup'
  /** Where it is written to, in the folder that the page runs in. */
  readonly file?: string
  /** Why it is not run. */
  readonly norun?: string
  /** Runs where this command succeeds. */
  readonly condition?: string
}

/** @throws with page and line where a fence does not say what is to be done with its block, or is not closed */
export function blocksOf(page: string, text = readFileSync(page, 'utf8')): Block[] {
  const blocks: Block[] = []
  const lines = text.split('\n')
  for (let at = 0; at < lines.length; at++) {
    const [, indent = '', info = '', isSetup] =
      /^( *)```(.*)$/.exec(lines[at] ?? '') ??
      (/^<!-- docs:check$/.test(lines[at] ?? '') ? ['', '', '', '1'] : [])
    if (indent === '' && info === '' && !isSetup && !/^ *```/.test(lines[at] ?? '')) continue
    const end = lines.findIndex(
      (line, i) => i > at && (isSetup ? line === '-->' : line === `${indent}\`\`\``),
    )
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
