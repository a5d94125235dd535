// A page as one shell script whose line numbers are the page's, so that what fails is named by page and line.
import type { Block } from './blocks.ts'

/**
 * Its `sh` blocks in order, and of the rest empty lines. `curl … # 429` expects that status; without it, one below 400.
 * @param blocks of one page, those that are to run
 */
export function scriptOf(blocks: readonly Block[]): string {
  const lines: string[] = []
  for (const { language, line, text, file, norun } of blocks) {
    if (language !== 'sh' || file !== undefined || norun !== undefined) continue
    for (const [index, written] of text.split('\n').entries()) lines[line + index] = written
  }
  for (const [index, line = ''] of lines.entries()) {
    const [, status] = /\s# (\d{3})\b[^'"]*$/.exec(line) ?? []
    if (status !== undefined) expectStatus(lines, index, status)
  }
  return Array.from(lines, line => line ?? '').join('\n')
}

/** Before the first line of a command that is continued. */
function expectStatus(lines: string[], last: number, status: string): void {
  let first = last
  while (lines[first - 1]?.endsWith('\\')) first -= 1
  lines[first] = (lines[first] ?? '').replace(/\bcurl\b/, `EXPECTED_STATUS=${status} curl`)
}
