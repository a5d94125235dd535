// Tests that docs/limits.md shows the defaults of the configuration schema.
import { describe, expect, it } from 'vitest'
import { plain, rowsStarting } from './read-tables.ts'
import { schemaKeys } from './schema-keys.ts'

describe('docs/limits.md', () => {
  it('shows the correct default of each key', () => {
    const defaults = new Map(schemaKeys().map(({ path, byDefault }) => [path, byDefault]))
    const rows = rowsStarting(/./, 'limits.md').filter(([, , key = '']) => /^`[a-z]+[.[]/.test(key))
    expect(rows.length).toBeGreaterThan(30)
    const wrong = rows.filter(([, shown, key]) => {
      const byDefault = defaults.get(plain(key))
      // If the schema has no default for a key, the page describes the value in words.
      return byDefault === undefined || (byDefault !== 'none' && byDefault !== plain(shown))
    })
    expect(wrong).toEqual([])
  })
})
