// Turns a page into one shell script. Each command has the same line number as on the page, so that reports show the
// right line.
import type { Block } from './blocks.ts'

/**
 * Returns the `sh` blocks in order, with empty lines between the blocks. A line `curl … # 429` expects status 429. A
 * line without such a comment expects a status below 400.
 * @param blocks the blocks to run, all from one page
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

/** Adds the expected status to a `curl` command. If the command has several lines, changes its first line. */
function expectStatus(lines: string[], last: number, status: string): void {
  let first = last
  while (lines[first - 1]?.endsWith('\\')) first -= 1
  lines[first] = (lines[first] ?? '').replace(/\bcurl\b/, `EXPECTED_STATUS=${status} curl`)
}
