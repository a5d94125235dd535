// Tests the format of codes and tokens, which are derived from a database row and a secret.
import { beforeAll, describe, expect, it } from 'vitest'
import { createCodeDerivation, idOfToken } from '../../../src/accounts/codes/code-derivation.ts'
import type { AccountCode } from '../../../src/accounts/codes/code-issue-store.ts'
import { createCodeKeys } from '../../../src/accounts/codes/code-key-store.ts'
import { createSealer, type Sealer } from '../../../src/identity/sealer.ts'

const row: AccountCode = {
  id: '6f1ed002-ab59-4f6e-8f1c-0123456789ab',
  user_id: 7,
  purpose: 'email',
  email: 'ada@example.com',
  session_epoch: 3,
  new_email: 'ada@example.org',
  expires_at: new Date(0),
}

let sealers: { first: Sealer; second: Sealer; rotated: Sealer }

beforeAll(async () => {
  sealers = {
    first: await createSealer('the first secret'),
    second: await createSealer('the second secret'),
    rotated: await createSealer('the second secret', 'the first secret'),
  }
})

const noDatabase = {
  query: () => {
    throw new Error('the database was queried for a key')
  },
}
const under = (sealer: Sealer) => createCodeDerivation(createCodeKeys(noDatabase, sealer))

describe('the code and the token that are derived from a row', () => {
  it('are always the same for this row, with 8 digits in the code and the row id in the token', async () => {
    const { code, token } = await under(sealers.first).codeOf(row)
    expect(code).toMatch(/^\d{8}$/)
    expect(token).toMatch(/^[A-Za-z0-9_-]{64}$/)
    expect(idOfToken(token)).toBe(row.id)
    expect(await under(await createSealer('the first secret')).codeOf(row)).toEqual({ code, token })
  })

  it('have no preferred first digit, so about equally many codes start with each digit, including 0', async () => {
    const firstDigits = new Map<string, number>()
    for (let user_id = 1; user_id <= 5_000; user_id += 1) {
      const { code } = await under(sealers.first).codeOf({ ...row, user_id })
      firstDigits.set(code.charAt(0), (firstDigits.get(code.charAt(0)) ?? 0) + 1)
    }
    expect(firstDigits.size).toBe(10)
    // The test derives the same codes in every run, so this check cannot fail by chance. The limit of 85 is four
    // standard deviations.
    for (const count of firstDigits.values()) expect(Math.abs(count - 500)).toBeLessThan(85)
  })

  it.each([
    { id: '6f1ed002-ab59-4f6e-8f1c-0123456789ac' },
    { user_id: 8 },
    { purpose: 'verify' as const },
    { email: 'eve@example.com' },
    { session_epoch: 4 },
    { new_email: 'eve@example.org' },
    { new_email: null },
  ])('do not match a row that differs only in %j', async other => {
    const derivation = under(sealers.first)
    const { code, token } = await derivation.codeOf(row)
    expect(await derivation.isCode({ ...row, ...other }, code)).toBe(false)
    expect(await derivation.isToken({ ...row, ...other }, token)).toBe(false)
  })

  it('do not match after they are shortened, lengthened or changed', async () => {
    const derivation = under(sealers.first)
    const { code, token } = await derivation.codeOf(row)
    expect(await derivation.isCode(row, code)).toBe(true)
    expect(await derivation.isToken(row, token)).toBe(true)
    const last = token.endsWith('A') ? 'B' : 'A'
    for (const wrong of ['', code.slice(1), `${code}0`, ` ${code}`, token, code.replace(/.$/, 'x')])
      expect(await derivation.isCode(row, wrong)).toBe(false)
    for (const wrong of ['', code, token.slice(1), `${token}A`, token.slice(0, -1) + last])
      expect(await derivation.isToken(row, wrong)).toBe(false)
  })

  it.each(['', 'x', '12345678', 'é'.repeat(64), '='.repeat(64), 'A'.repeat(63), 'A'.repeat(65)])(
    'have a fixed format, so no row id is found in the invalid token %j',
    token => expect(idOfToken(token)).toBeUndefined(),
  )
})

describe('the secret for codes', () => {
  it('must be the same when a code is created and when it is checked, and produces a different key for each purpose', async () => {
    const { code, token } = await under(sealers.first).codeOf(row)
    expect(await under(sealers.second).isCode(row, code)).toBe(false)
    expect(await under(sealers.second).isToken(row, token)).toBe(false)
    const [ofCodes] = sealers.first.keysFor('account codes')
    const [ofOthers] = sealers.first.keysFor('something else')
    expect(ofCodes).toHaveLength(32)
    expect(ofCodes?.equals(ofOthers as Buffer)).toBe(false)
  })

  it('can be rotated while mails are pending, and codes derived from the old secret still match', async () => {
    const before = await under(sealers.first).codeOf(row)
    const after = under(sealers.rotated)
    expect(await after.isCode(row, before.code)).toBe(true)
    expect(await after.isToken(row, before.token)).toBe(true)
    const next = await after.codeOf(row)
    expect(next).toEqual(await under(sealers.second).codeOf(row))
    expect(await after.isCode(row, next.code)).toBe(true)
  })
})
