// Tests the texts of all files against the style guide (docs/dev/style.md). The rules are in test/docs/style/rules.ts.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { findingsIn } from './style/findings.ts'
import { rules } from './style/rules.ts'

/** Files that are not checked, because they quote texts that break the rules. */
const exceptions = new Set(['test/docs/style.test.ts', 'test/docs/style/rules.ts'])

const files = execFileSync('git', ['ls-files', '*.ts', '*.tsx', '*.mjs', '*.md'], { encoding: 'utf8' })
  .trim()
  .split('\n')
  .filter(file => !exceptions.has(file))

it('all comments, texts, test titles and pages follow the style guide', () => {
  expect(files.flatMap(file => findingsIn(file, readFileSync(file, 'utf8'))).join('\n')).toBe('')
}, 60_000)

const long = `Word${' word'.repeat(30)}`

it.each([
  ['a long comment', 'a.ts', `const a = 1\n// Word.\n// ${long}.`, 'a.ts:3: a sentence of 31 words'],
  ['a long title', 'a.ts', `it('${long}', () => {})`, 'a.ts:1: a sentence of 31 words'],
  ['a joined text', 'a.ts', `const a =\n  'the rule of ' +\n  'the one before'`, 'a.ts:2: "the one before"'],
  ['a template', 'a.ts', 'const a = `the key ${id} is encrypted anew`', 'a.ts:1: "anew"'],
  ['text of a page', 'a.tsx', 'const a = <p>No user stands here now</p>', 'a.tsx:1: "stands"'],
  ['a JSDoc tag', 'a.ts', '/**\n * A key.\n * @param a what is read\n */', 'a.ts:3: "begins with What'],
  ['a paragraph', 'a.md', '# Who\n\nA key.\nWhere it is, `a` is.', 'a.md:4: "where for a condition"'],
  ['a list item', 'a.md', '- A key.\n- Of all keys, the first.', 'a.md:2: "begins with Of"'],
  ['a cell', 'a.md', `| a |\n| --- |\n| ${'Word. '.repeat(41)} |`, 'a.md:3: a cell of 41 words'],
])('the style check reports a problem in %s with its line and rule', (_, file, text, finding) => {
  expect(findingsIn(file, text)).toEqual([expect.stringContaining(finding)])
})

it.each([
  ['code in a comment', 'a.ts', '// The method `that of all` is used.'],
  ['SQL', 'a.ts', "query('select a from b where no and nobody')"],
  ['French', 'a.ts', "const a = 'le mot that of est dans la phrase'"],
  ['a question', 'a.md', 'Who is it?'],
  ['a fence', 'a.md', '```text\nOf before anew\n```'],
])('the style check ignores %s', (_, file, text) => {
  expect(findingsIn(file, text)).toEqual([])
})

it('each rule of the style check has a different name', () => {
  expect(new Set(rules.map(({ name }) => name)).size).toBe(rules.length)
})
