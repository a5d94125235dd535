// Tests that new content is reported only if two polls in a row find the same content.
import { expect, it } from 'vitest'
import { watchContent } from '../../src/async/watch-content.ts'

/** Returns how many changes a watch reports if its polls find these contents, one after another. */
async function changesIn(contents: (string | undefined)[], inUse: string | undefined): Promise<number> {
  let changes = 0
  let stop = () => {}
  await new Promise<void>(resolve => {
    const left = [...contents]
    stop = watchContent({
      read() {
        if (left.length === 0) resolve()
        return left.shift()
      },
      inUse: () => inUse,
      intervalMs: 1,
      onChange: () => {
        changes += 1
      },
    })
  })
  stop()
  return changes
}

it.each([
  ['once, if two polls agree', ['new', 'new', 'new'], 'old', 1],
  ['never, if no two polls agree', ['new', 'newer', 'newest'], 'old', 0],
  ['once, if a poll between two equal contents finds nothing', ['new', undefined, 'new'], 'old', 1],
  ['never, if polls find nothing', [undefined, undefined, undefined], 'old', 0],
  [
    'once, if a later poll finds nothing and no content is in use',
    ['a', 'a', undefined, 'a', 'a'],
    undefined,
    1,
  ],
])('new content is reported %s', async (_, contents, inUse, changes) => {
  expect(await changesIn(contents, inUse)).toBe(changes)
})
