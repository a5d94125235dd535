// `npm run docs:check` runs every command of README and docs in a clean clone. A failure shows its page and line.
import { afterAll, describe, expect, it } from 'vitest'
import { type Block, blocksOf } from './check/blocks.ts'
import { pages } from './check/pages.ts'
import { runPage } from './check/run.ts'
import { problemsOf } from './check/yaml.ts'

const counts = { run: 0, yaml: 0, files: 0, text: 0 }
const notRun: string[] = []

function says({ page, line, language }: Block, why: string): string {
  return `${page}:${line}: ${language}: ${why}`
}

const isRun = ({ norun, use }: Block) => norun === undefined && use !== 'text'
const all = pages().map(page => ({ page, blocks: blocksOf(page) }))
for (const block of all.flatMap(({ blocks }) => blocks)) {
  if (block.norun !== undefined) notRun.push(says(block, block.norun))
  else if (block.use === 'text') counts.text += 1
  else if (block.language === 'yaml') counts.yaml += 1
  else if (block.file !== undefined) counts.files += 1
}

describe.each(all.filter(({ blocks }) => blocks.some(isRun)))('$page', ({ blocks }) => {
  const yaml = blocks.filter(({ language, norun }) => language === 'yaml' && norun === undefined)
  if (yaml.length > 0) {
    it('has configuration that passes peage check', () => {
      expect(yaml.flatMap(problemsOf)).toEqual([])
    })
  }

  const commands = blocks.filter(isRun)
  const shell = commands.filter(
    ({ language, file, use }) => language === 'sh' && file === undefined && use === 'run',
  )
  if (shell.length > 0) {
    it('has commands that work', async () => {
      const { unmet, failure } = await runPage(commands)
      for (const block of unmet) notRun.push(says(block, `not on this machine: ${block.condition}`))
      counts.run += shell.length - unmet.length
      if (failure !== undefined) throw new Error(failure)
    })
  }
})

afterAll(() => {
  console.log(
    [
      `${counts.run} blocks of commands run; ${counts.files} files used by them; ${counts.yaml} configurations checked;`,
      `${counts.text} blocks of output or drawings; ${notRun.length} blocks not run:`,
      ...notRun,
    ].join('\n'),
  )
})
