// Code and token of a row: what they look like, what they stand for, and under which secret.
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
    throw new Error('the database was asked for a key')
  },
}
const under = (sealer: Sealer) => createCodeDerivation(createCodeKeys(noDatabase, sealer))

describe('what a mail carries', () => {
  it('is a code of 8 digits and a token of base64url that names its row, the same each time', async () => {
    const { code, token } = await under(sealers.first).codeOf(row)
    expect(code).toMatch(/^\d{8}$/)
    expect(token).toMatch(/^[A-Za-z0-9_-]{64}$/)
    expect(idOfToken(token)).toBe(row.id)
    expect(await under(await createSealer('the first secret')).codeOf(row)).toEqual({ code, token })
  })

  it('has codes that are spread evenly, those that begin with a zero too', async () => {
    const firstDigits = new Map<string, number>()
    for (let user_id = 1; user_id <= 5_000; user_id += 1) {
      const { code } = await under(sealers.first).codeOf({ ...row, user_id })
      firstDigits.set(code.charAt(0), (firstDigits.get(code.charAt(0)) ?? 0) + 1)
    }
    expect(firstDigits.size).toBe(10)
    // Derived, and so the same in every run: 500 of each digit, give or take four standard deviations.
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
  ])('is another one of a row that differs in %j', async other => {
    const derivation = under(sealers.first)
    const { code, token } = await derivation.codeOf(row)
    expect(await derivation.isCode({ ...row, ...other }, code)).toBe(false)
    expect(await derivation.isToken({ ...row, ...other }, token)).toBe(false)
  })

  it('is right as it is alone: nothing shorter, longer or changed', async () => {
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
    'has no token like %j',
    token => expect(idOfToken(token)).toBeUndefined(),
  )
})

describe('the secret', () => {
  it('decides: under another one nothing is right, and a code tells nothing of a key that seals', async () => {
    const { code, token } = await under(sealers.first).codeOf(row)
    expect(await under(sealers.second).isCode(row, code)).toBe(false)
    expect(await under(sealers.second).isToken(row, token)).toBe(false)
    const [ofCodes] = sealers.first.keysFor('account codes')
    const [ofOthers] = sealers.first.keysFor('something else')
    expect(ofCodes).toHaveLength(32)
    expect(ofCodes?.equals(ofOthers as Buffer)).toBe(false)
  })

  it('may be exchanged while mails are out: what was mailed under the old one stays right', async () => {
    const before = await under(sealers.first).codeOf(row)
    const after = under(sealers.rotated)
    expect(await after.isCode(row, before.code)).toBe(true)
    expect(await after.isToken(row, before.token)).toBe(true)
    const next = await after.codeOf(row)
    expect(next).toEqual(await under(sealers.second).codeOf(row))
    expect(await after.isCode(row, next.code)).toBe(true)
  })
})
