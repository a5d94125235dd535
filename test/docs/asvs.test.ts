// Tests docs/dev/asvs.md: every requirement of its chapters has a row, the totals match the rows, and every file that
// the page names exists.
import { existsSync } from 'node:fs'
import { expect, it } from 'vitest'
import { plain, rowsStarting } from './read-tables.ts'

/** For each chapter of ASVS 5.0.0, the number of its requirements at level 1 and at level 2. */
const chapters: Record<string, readonly [number, number]> = {
  2: [4, 7],
  4: [2, 8],
  6: [13, 22],
  7: [6, 12],
  8: [4, 3],
  9: [4, 3],
  11: [3, 11],
  12: [3, 6],
  13: [1, 12],
  14: [2, 7],
  16: [0, 16],
}
const statuses = ['met', 'met, set', 'not met', 'not ours']
const rows = rowsStarting(/^\d+\.\d+\.\d+$/, 'dev/asvs.md')

it('docs/dev/asvs.md contains each requirement of its chapters exactly once', () => {
  const counted = Object.keys(chapters).map(chapter => {
    const own = rows.filter(([number = '']) => number.startsWith(`${chapter}.`))
    return [chapter, ['1', '2'].map(level => own.filter(row => row[1] === level).length)]
  })
  expect(Object.fromEntries(counted)).toEqual(chapters)
  expect(new Set(rows.map(([number]) => number)).size).toBe(rows.length)
})

it.each([
  ['0.1', 3],
  ['now', 4],
] as const)('in docs/dev/asvs.md, the totals for the release "%s" match the rows', (release, column) => {
  const counts = ['1', '2'].map(level => {
    const of = rows.filter(row => row[1] === level).map(row => row[column])
    return [release, level, of.length, ...statuses.map(one => of.filter(status => status === one).length)]
  })
  for (const [, , all, ...parts] of counts) {
    expect(parts.reduce((sum: number, part) => sum + Number(part), 0)).toBe(all)
  }
  const figures = rowsStarting(/^(0\.1|now)$/, 'dev/asvs.md').filter(row => row[0] === release)
  expect(figures).toEqual(counts.map(row => row.map(String)))
})

it('in docs/dev/asvs.md, each row names only existing files, and each row with the status "met, set" names the key to set', () => {
  for (const [number, , , , now, why = ''] of rows) {
    if (now === 'met, set') expect(why, number).toMatch(/`[a-zA-Z.?]/)
    const files = [...why.matchAll(/`[^`]+`/g)]
      .map(([code]) => plain(code))
      .filter(code => /^\w+\/.*\.\w+$/.test(code))
    expect(
      files.filter(file => !existsSync(file)),
      number,
    ).toEqual([])
  }
})
