// Tests that the index of the documentation lists every page, and that the README and the how-to pages are short.
import { readdirSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { pages } from './check/pages.ts'
import { pageTexts } from './style/page-texts.ts'
import { withoutCode, wordsIn } from './style/text.ts'

const index = readFileSync('docs/README.md', 'utf8')
/** Maps the heading of each part of the index to the pages that the part lists. */
const parts = new Map(
  index
    .split(/^## /m)
    .slice(1)
    .map(part => [
      part.split('\n', 1)[0] ?? '',
      [...part.matchAll(/^\| \[[^\]]+\]\(([^)]+)\)/gm)].map(([, page]) => `docs/${page}`),
    ]),
)
const contributors = 'For contributors'

it('the index of the documentation has five parts', () => {
  expect([...parts.keys()]).toEqual(['Start', 'How to', 'Reference', 'Background', contributors])
})

it('the index of the documentation contains each page for users exactly once', () => {
  const listed = [...parts].flatMap(([name, entries]) => (name === contributors ? [] : entries))
  const written = pages().filter(page => /^docs\/[^/]+$/.test(page) && page !== 'docs/README.md')
  expect(listed.sort()).toEqual(written)
})

it('in the index, the part for contributors contains each page and each folder of docs/dev once', () => {
  const written = readdirSync('docs/dev', { withFileTypes: true })
    .filter(entry => entry.isDirectory() || entry.name.endsWith('.md'))
    .map(({ name }) => `docs/dev/${name}`)
  expect(parts.get(contributors)?.toSorted()).toEqual(written.sort())
})

it('every page is in docs, in docs/dev or in a folder that the index contains', () => {
  const folders = ['docs', 'docs/dev', ...(parts.get(contributors) ?? [])]
  const nested = pages().filter(page => page.startsWith('docs/'))
  expect(nested.filter(page => !folders.includes(page.slice(0, page.lastIndexOf('/'))))).toEqual([])
})

it.each(parts.get('How to') ?? [])('the page %s has fewer than 1,500 words, not counting code', page => {
  expect(wordsOf(page)).toBeLessThan(1500)
})

it('the README has at most 120 lines', () => {
  expect(readFileSync('README.md', 'utf8').trimEnd().split('\n').length).toBeLessThanOrEqual(120)
})

function wordsOf(page: string): number {
  return pageTexts(readFileSync(page, 'utf8')).reduce(
    (sum, { value }) => sum + wordsIn(withoutCode(value)),
    0,
  )
}
