// README and docs: every fenced block says what is to be done with it, YAML passes `peage check`, links lead somewhere.
// `npm run docs:check` runs what can be run.
import { describe, expect, it } from 'vitest'
import { blocksOf } from './check/blocks.ts'
import { deadLinks } from './check/links.ts'
import { pages } from './check/pages.ts'
import { problemsOf } from './check/yaml.ts'

describe.each(pages())('%s', page => {
  it('says of every block what is to be done with it', () => {
    expect(() => blocksOf(page)).not.toThrow()
  })

  it('shows configuration that peage check finds nothing wrong with', () => {
    const blocks = blocksOf(page).filter(({ language, norun }) => language === 'yaml' && norun === undefined)
    expect(blocks.flatMap(problemsOf)).toEqual([])
  })

  it('has links that lead somewhere', () => {
    expect(deadLinks(page)).toEqual([])
  })
})

describe('a page', () => {
  it.each([
    ['no language', 'a\n```\nls\n```', 'p.md:2: ```: no language'],
    ['a language that nothing runs', '```js\n1\n```', 'p.md:1: ```js: nothing runs it'],
    ['an unknown marking', '```sh nurun: x\n1\n```', 'p.md:1: ```sh nurun: x: no language'],
    ['no end', 'a\n\n```sh\nls', 'p.md:3: a block that is not closed'],
  ])('with %s is refused with page and line', (_, text, message) => {
    expect(() => blocksOf('p.md', text)).toThrow(message)
  })

  it('has blocks, setups, files, conditions and reasons', () => {
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
      { page: 'p.md', line: 11, language: 'sh', use: 'run', condition: 'command -v go', text: 'go' },
      { page: 'p.md', line: 14, language: 'go', use: 'run', norun: 'because', text: 'x' },
      { page: 'p.md', line: 17, language: 'text', use: 'text', text: '' },
    ])
  })
})
