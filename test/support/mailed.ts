// Reads the mails to users, and the codes in these mails, from the table `mails`.

import { createCodeDerivation } from '../../src/accounts/codes/code-derivation.ts'
import { type AccountCode, findLiveCode } from '../../src/accounts/codes/code-issue-store.ts'
import { createCodeKeys } from '../../src/accounts/codes/code-key-store.ts'
import { createSealer } from '../../src/identity/sealer.ts'
import type { TestGateway } from './gateway.ts'

/**
 * Returns a `mail` section for gateway.yaml, without rate limits. No SMTP server listens at its address.
 * @param more further members as text; each member starts with a comma
 */
export function mailSection(more = ''): string {
  const limits = more.includes('rate_limits') ? '' : ', rate_limits: { per_email: 0, per_address: 0 }'
  return `mail: { smtp: 'smtp://127.0.0.1:1', from: no-reply@example.com${limits}${more} }\n`
}

interface StoredMail {
  readonly kind: string
  readonly user_id: number
  readonly code_id: string | null
}

/** Returns the mails to an address, oldest first. */
export function mailsTo(gateway: TestGateway, address: string): Promise<StoredMail[]> {
  return gateway.sql<StoredMail>('select kind, user_id, code_id from mails where address = $1 order by id', [
    address,
  ])
}

export async function kindsTo(gateway: TestGateway, address: string): Promise<string[]> {
  return (await mailsTo(gateway, address)).map(({ kind }) => kind)
}

/**
 * Returns the newest valid code mailed to an address.
 * @param keySecret the gateway's `auth.key_secret`, if set
 */
export async function codeTo(
  gateway: TestGateway,
  address: string,
  keySecret?: string,
): Promise<{ code: string; token: string; row: AccountCode }> {
  const { database } = gateway.backing
  const ids = (await mailsTo(gateway, address)).flatMap(({ code_id: id }) => (id === null ? [] : [id]))
  const row = await findLiveCode(database, String(ids.at(-1)), new Date(gateway.clock.now()))
  if (row === undefined) throw new Error(`no live code for ${address}`)
  const sealer = keySecret === undefined ? undefined : await createSealer(keySecret)
  const pair = await createCodeDerivation(createCodeKeys(database, sealer)).codeOf(row)
  return { ...pair, row }
}

/** Returns a wrong code of eight digits: the correct code plus `by`. */
export function otherCode(code: string, by = 1): string {
  return String((Number(code) + by) % 100_000_000).padStart(8, '0')
}
