// Checks the length of new passwords, and optionally refuses passwords that attackers try first.
import { readFileSync } from 'node:fs'
import type { Config } from '../config/sections/schema.ts'
import { Refusal } from '../refusals/refusal.ts'
import { passwordRefusal } from './password.ts'

/**
 * @param email the normalized email of the account
 * @throws Refusal `password_too_short`, `password_too_long`, `password_too_common`
 */
export type ValidateNewPassword = (password: string, email: string) => void

export function newPasswordValidator(
  commonPasswords: Config['auth']['common_passwords'],
): ValidateNewPassword {
  return (password, email) => {
    const refusalCode = passwordRefusal(password)
    if (refusalCode !== undefined) throw new Refusal(refusalCode)
    if (commonPasswords === 'allow') return
    const folded = password.toLowerCase()
    const isOfEmail = folded === email || folded === email.slice(0, email.lastIndexOf('@'))
    if (isOfEmail || readCommonPasswords().has(folded)) throw new Refusal('password_too_common')
  }
}

/** This relative path is valid from `src/`, `build/` and `dist/`. */
const list = new URL('../../assets/common-passwords.txt', import.meta.url)

let commonPasswords: ReadonlySet<string> | undefined

/** Reads the list at its first use. The list takes about 1 MB of memory, and the default setting does not need it. */
function readCommonPasswords(): ReadonlySet<string> {
  commonPasswords ??= new Set(readFileSync(list, 'utf8').trimEnd().split('\n'))
  return commonPasswords
}
