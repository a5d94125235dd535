// docs/clients.md lists exactly the error codes of the refusal catalog, each with its status and sentence.
import { describe, expect, it } from 'vitest'
import { catalog } from '../../src/refusals/catalog.ts'
import { codeRows, plain } from './read-tables.ts'

describe('docs/clients.md', () => {
  it('lists exactly the error codes of the catalog, each once with its status and sentence', () => {
    const rows = codeRows('clients.md').filter(([, status]) => /^\d{3}$/.test(status ?? ''))
    const written = rows.map(([code, status, sentence]) => [plain(code), Number(status), plain(sentence)])
    const known = Object.entries(catalog).map(([code, { status, error }]) => [code, status, error])
    expect(known.length).toBeGreaterThan(20)
    expect(written.sort()).toEqual(known.sort())
  })
})
