// Tests that the commands in docs/test-your-configuration.md print the output that the page shows.
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { commandLine } from '../commands/peage.ts'

const page = readFileSync(new URL('../../docs/test-your-configuration.md', import.meta.url), 'utf8')
const blocks = (language: string) =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\\b[^\n]*\n(.*?)^\`\`\`$`, 'gms'))].map(
    ([, text = '']) => text,
  )

const { peage, write } = commandLine()
const [gateway = '', cases = ''] = blocks('yaml')
write('gateway.yaml', gateway)
write('more.yaml', cases)

/** All commands of the page, without `$ peage`, each with the output that the page shows. */
const commands = blocks('console').flatMap(block =>
  block
    .split(/^\$ peage /m)
    .slice(1)
    .map(text => {
      const end = text.indexOf('\n')
      return [text.slice(0, end), text.slice(end + 1)] as const
    }),
)

describe('docs/test-your-configuration.md', () => {
  it('contains more than four commands', () => expect(commands.length).toBeGreaterThan(4))

  it.each(commands)('shows the actual output of `peage %s`', async (words, printed) => {
    const { stdout, stderr } = await peage(words.split(' ').map(word => word.replace(/^'(.*)'$/, '$1')))
    expect({ stdout, stderr }).toEqual({ stdout: printed, stderr: '' })
  })
})
