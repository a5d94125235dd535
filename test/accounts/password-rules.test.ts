// The rules for new passwords, with and without `auth.common_passwords`.
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { newPasswordValidator } from '../../src/accounts/password-rules.ts'
import { outcome } from './setup.ts'

const email = 'ada.lovelace@example.com'
const outcomeOf = (setting: 'allow' | 'refuse', password: string, of: string) =>
  outcome((async () => newPasswordValidator(setting)(password, of))())
const refuse = (password: string, of = email) => outcomeOf('refuse', password, of)

describe('common passwords, where they are refused', () => {
  it.each(['password', '12345678', 'PassWord1', 'qwertyuiop', 'motdepasse', 'azertyuiop'])(
    '%s is too common, letter case aside',
    async password => expect(await refuse(password)).toBe('password_too_common'),
  )

  it.each(['00000000', '87654321', '987654321', '12341234', 'aaaaaaaa'])(
    'so are repetitions and runs, which lists for strength meters leave out: %s',
    async password => expect(await refuse(password)).toBe('password_too_common'),
  )

  it.each(['ada.lovelace', 'Ada.Lovelace', email, email.toUpperCase()])(
    'so is the email or its local part: %s',
    async password => expect(await refuse(password)).toBe('password_too_common'),
  )

  it.each(['correct horse battery', 'example.com', 'ada.lovelace1', `${email} `, 'lovelace@example'])(
    'others are not: %s',
    async password => expect(await refuse(password)).toBe('ok'),
  )

  it('the lengths are judged first', async () => {
    expect(await refuse('123456')).toBe('password_too_short')
    const long = `${'x'.repeat(1_100)}@example.com`
    expect(await refuse(long, long)).toBe('password_too_long')
  })

  it('an account without an email that is known has none of it', async () => {
    expect(await refuse('anything else', '')).toBe('ok')
  })
})

it('common passwords are taken where nothing is said', async () => {
  expect(await outcomeOf('allow', 'password', email)).toBe('ok')
  expect(await outcomeOf('allow', email, email)).toBe('ok')
})

it('the list has 10,000 of 8 characters or more, in lower case, each once', () => {
  const words = readFileSync('assets/common-passwords.txt', 'utf8').trimEnd().split('\n')
  expect([words.length, new Set(words).size]).toEqual([10_000, 10_000])
  expect(words.filter(word => word.length < 8 || word !== word.toLowerCase())).toEqual([])
})
