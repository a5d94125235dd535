// The pages of this folder: each row names a test, and that test is there under this title.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

const here = new URL('.', import.meta.url)
const pages = readdirSync(here).filter(name => name.endsWith('.md'))
const cellOfTest = /^`([\w/.-]+\.test\.ts)` › (.+)$/

/** The cells of every row, without the tables' heads. */
function rowsOf(page: string): string[][] {
  return readFileSync(new URL(page, here), 'utf8')
    .split('\n')
    .filter(line => line.startsWith('|') && !/^\|(?: rule \| test \|| --- )/.test(line))
    .map(line =>
      line
        .slice(1, -1)
        .split('|')
        .map(cell => cell.trim()),
    )
}

/** The texts of a file in quotes, as they stand there: its titles are among them. */
function textsOf(file: string): Set<string> {
  const text = readFileSync(file, 'utf8')
  const quoted = text.matchAll(/'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"/g)
  return new Set([...quoted].map(([, single = '', double = '']) => single + double))
}

it('there are pages', () =>
  expect(pages).toEqual(expect.arrayContaining(['accounts.md', 'mail.md', 'operators.md', 'targets.md'])))

describe.each(pages)('%s', page => {
  const rows = rowsOf(page)

  it('has rules, each with a test', () => {
    expect(rows.length).toBeGreaterThan(20)
    expect(rows.filter(row => row.length !== 2 || !cellOfTest.test(String(row[1])))).toEqual([])
    expect(rows[0]?.[0]).not.toBe('')
  })

  it('names tests that are there', () => {
    const missing = rows.filter(([, cell = '']) => {
      const [, file = '', title = ''] = cellOfTest.exec(cell) ?? []
      const path = new URL(`../${file}`, here)
      return !existsSync(path) || !textsOf(path.pathname).has(title)
    })
    expect(missing).toEqual([])
  })
})
