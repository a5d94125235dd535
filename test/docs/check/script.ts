// Turns a page into one shell script with the line numbers of the page, so that a failure can name page and line.
import type { Block } from './blocks.ts'

/**
 * Returns the `sh` blocks in order, with empty lines between them. `curl … # 429` expects status 429. Without a
 * comment, curl expects a status below 400.
 * @param blocks the blocks of one page that are to run
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

/** Sets the expected status on the first line of a continued command. */
function expectStatus(lines: string[], last: number, status: string): void {
  let first = last
  while (lines[first - 1]?.endsWith('\\')) first -= 1
  lines[first] = (lines[first] ?? '').replace(/\bcurl\b/, `EXPECTED_STATUS=${status} curl`)
}
