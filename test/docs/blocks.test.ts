// Tests README and docs: every fenced block declares its use, YAML passes `peage check`, and links work.
// `npm run docs:check` runs the commands of the pages.
import { describe, expect, it } from 'vitest'
import { blocksOf } from './check/blocks.ts'
import { deadLinks } from './check/links.ts'
import { pages } from './check/pages.ts'
import { problemsOf } from './check/yaml.ts'

describe.each(pages())('%s', page => {
  it('declares for every code block how it is used', () => {
    expect(() => blocksOf(page)).not.toThrow()
  })

  it('shows only configuration that passes peage check', () => {
    const blocks = blocksOf(page).filter(({ language, norun }) => language === 'yaml' && norun === undefined)
    expect(blocks.flatMap(problemsOf)).toEqual([])
  })

  it('has only links that work', () => {
    expect(deadLinks(page)).toEqual([])
  })
})

describe('a page', () => {
  it.each([
    ['no language', 'a\n```\nls\n```', 'p.md:2: ```: no language'],
    ['a language that no program runs', '```js\n1\n```', 'p.md:1: ```js: nothing runs it'],
    ['an unknown marking', '```sh nurun: x\n1\n```', 'p.md:1: ```sh nurun: x: no language'],
    ['no end', 'a\n\n```sh\nls', 'p.md:3: a block that is not closed'],
  ])(
    'with a block that has %s is rejected, and the message contains the page and the line',
    (_, text, message) => {
      expect(() => blocksOf('p.md', text)).toThrow(message)
    },
  )

  it('is parsed into code blocks with their language, use, file, condition and reason', () => {
    const text = [
      '<!-- docs:check',
      'a=1',
      '-->',
      '```sh',
      'ls',
      '```',
      '- x',
      '  ```js file: a.mjs',
      '  1',
      '  ```',
      '  <!-- docs:check',
      '  b=1',
      '  -->',
      '```sh if: command -v go',
      'go',
      '```',
      '```go norun: because',
      'x',
      '```',
      '```text',
      '```',
    ].join('\n')
    expect(blocksOf('p.md', text)).toEqual([
      { page: 'p.md', line: 1, language: 'sh', use: 'setup', text: 'a=1' },
      { page: 'p.md', line: 4, language: 'sh', use: 'run', text: 'ls' },
      { page: 'p.md', line: 8, language: 'js', use: 'run', file: 'a.mjs', text: '1' },
      { page: 'p.md', line: 11, language: 'sh', use: 'setup', text: 'b=1' },
      { page: 'p.md', line: 14, language: 'sh', use: 'run', condition: 'command -v go', text: 'go' },
      { page: 'p.md', line: 17, language: 'go', use: 'run', norun: 'because', text: 'x' },
      { page: 'p.md', line: 20, language: 'text', use: 'text', text: '' },
    ])
  })
})
