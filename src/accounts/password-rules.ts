// Which passwords accounts may be given: the lengths, and where operators ask for it none that everybody tries first.
import type { Config } from '../config/sections/schema.ts'
import { Refusal } from '../refusals/refusal.ts'
import { passwordRefusal } from './password.ts'

/**
 * Judges the form of a new password, at register, change and reset (CONTRACT §12).
 * @param email of the account, normalised
 * @throws Refusal `password_too_short`, `password_too_long`, `password_too_common`
 */
export type JudgePassword = (password: string, email: string) => Promise<void>

/** @param commonPasswords `auth.common_passwords` */
export function createJudgePassword(commonPasswords: Config['auth']['common_passwords']): JudgePassword {
  return async (password, email) => {
    const refusalCode = passwordRefusal(password)
    if (refusalCode !== undefined) throw new Refusal(refusalCode)
    if (commonPasswords === 'allow') return
    const folded = password.toLowerCase()
    const isOfEmail = folded === email || folded === email.slice(0, email.lastIndexOf('@'))
    if (isOfEmail || (await readCommonPasswords()).has(folded)) throw new Refusal('password_too_common')
  }
}

let commonPasswords: Promise<ReadonlySet<string>> | undefined

/** Read at its first use, some 1 MB from then on: most gateways ask for none of it. */
function readCommonPasswords(): Promise<ReadonlySet<string>> {
  commonPasswords ??= readList()
  return commonPasswords
}

async function readList(): Promise<ReadonlySet<string>> {
  const { commonPasswordList } = await import('./common-password-list.ts')
  return new Set(commonPasswordList.trim().split(/\s+/))
}
