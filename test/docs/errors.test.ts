// Tests that docs/errors.md lists exactly the error codes of the refusal catalog, each with its status and both texts.
import { describe, expect, it } from 'vitest'
import { catalog } from '../../src/refusals/catalog.ts'
import { codeRows, plain } from './read-tables.ts'

describe('docs/errors.md', () => {
  it('contains all error codes of the catalog and no other code, each once with its status and both texts', () => {
    // Some codes have a different status in the admin API. For these codes, the cell contains both statuses, for
    // example `401, 404`.
    const rows = codeRows('errors.md').filter(([, status]) => /^\d{3}(, \d{3})?$/.test(status ?? ''))
    const written = rows.map(([code, status, text]) => [
      plain(code),
      Number.parseInt(String(status), 10),
      text,
    ])
    const known = Object.entries(catalog).map(([code, { status, fr, en }]) => [
      code,
      status,
      `\`${fr}\` / \`${en}\``,
    ])
    expect(known.length).toBeGreaterThan(20)
    expect(written.sort()).toEqual(known.sort())
  })
})
