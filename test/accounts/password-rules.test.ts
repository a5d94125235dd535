// Tests the rules for new passwords, with both values of `auth.common_passwords`.
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { newPasswordValidator } from '../../src/accounts/password-rules.ts'
import { outcome } from './setup.ts'

const email = 'ada.lovelace@example.com'
const outcomeOf = (setting: 'allow' | 'refuse', password: string, of: string) =>
  outcome((async () => newPasswordValidator(setting)(password, of))())
const refuse = (password: string, of = email) => outcomeOf('refuse', password, of)

describe('with the setting `refuse`', () => {
  it.each(['password', '12345678', 'PassWord1', 'qwertyuiop', 'motdepasse', 'azertyuiop'])(
    'the password %s is too common, whatever its letter case',
    async password => expect(await refuse(password)).toBe('password_too_common'),
  )

  it.each(['00000000', '87654321', '987654321', '12341234', 'aaaaaaaa'])(
    'the password %s is too common, because it repeats characters or is a sequence',
    async password => expect(await refuse(password)).toBe('password_too_common'),
  )

  it.each(['ada.lovelace', 'Ada.Lovelace', email, email.toUpperCase()])(
    'the password %s is too common, because it is the email of the account or its local part',
    async password => expect(await refuse(password)).toBe('password_too_common'),
  )

  it.each(['correct horse battery', 'example.com', 'ada.lovelace1', `${email} `, 'lovelace@example'])(
    'the password "%s" is accepted',
    async password => expect(await refuse(password)).toBe('ok'),
  )

  it('the length of a password is checked first', async () => {
    expect(await refuse('123456')).toBe('password_too_short')
    const long = `${'x'.repeat(1_100)}@example.com`
    expect(await refuse(long, long)).toBe('password_too_long')
  })

  it('a password is not compared with an empty email', async () => {
    expect(await refuse('anything else', '')).toBe('ok')
  })
})

it('with the setting `allow`, a common password and the email of the account are accepted as passwords', async () => {
  expect(await outcomeOf('allow', 'password', email)).toBe('ok')
  expect(await outcomeOf('allow', email, email)).toBe('ok')
})

it('the list of common passwords has 10,000 different lowercase passwords of at least 8 characters', () => {
  const words = readFileSync('assets/common-passwords.txt', 'utf8').trimEnd().split('\n')
  expect([words.length, new Set(words).size]).toEqual([10_000, 10_000])
  expect(words.filter(word => word.length < 8 || word !== word.toLowerCase())).toEqual([])
})
