// docs/clients.md against the catalogue of refusals: every code, with its status and sentence, and none that there is not.
import { describe, expect, it } from 'vitest'
import { catalog } from '../../src/refusals/catalog.ts'
import { codeRows, plain } from './read-tables.ts'

describe('docs/clients.md', () => {
  it('has every code of the catalogue with its status and sentence, and no other, each once', () => {
    const rows = codeRows('clients.md').filter(([, status]) => /^\d{3}$/.test(status ?? ''))
    const written = rows.map(([code, status, sentence]) => [plain(code), Number(status), plain(sentence)])
    const known = Object.entries(catalog).map(([code, { status, error }]) => [code, status, error])
    expect(known.length).toBeGreaterThan(20)
    expect(written.sort()).toEqual(known.sort())
  })
})
