// Redeems a code or token from a mail. A try is counted before the code is compared. Concurrent uses of one code run
// one after another.
import { createCoalescingQueue } from '../../async/coalescing-queue.ts'
import type { Clock } from '../../clock.ts'
import type { CodeKind } from '../../mail/mail-kind.ts'
import { Refusal } from '../../refusals/refusal.ts'
import { type CodeDerivation, idOfToken } from './code-derivation.ts'
import type { AccountCode } from './code-issue-store.ts'
import type { CodeOwner, CodeRedemptionStore } from './code-redemption-store.ts'

/** The code or token that the client sent, without leading and trailing white space. */
export type SubmittedCode = { readonly token: string } | { readonly code: string; readonly owner: CodeOwner }

/**
 * @param work the function that spends the code. It returns undefined if the code is no longer valid.
 * @throws Refusal `code_invalid` if the code or token is wrong or no longer valid
 * @throws StorageError
 * @throws the errors of `work`
 */
export type RedeemCode = <T>(purpose: CodeKind, submitted: SubmittedCode, work: Work<T>) => Promise<T>

type Work<T> = (row: AccountCode, now: Date) => Promise<T | undefined>

interface Dependencies {
  codes: Pick<CodeRedemptionStore, 'countTry' | 'uncountTry' | 'findLive'>
  derivation: Pick<CodeDerivation, 'isCode' | 'isToken'>
  clock: Clock
}

export function createRedeemCode({ codes, derivation, clock }: Dependencies): RedeemCode {
  // Concurrent uses of the same code or token wait in this queue. If they did not wait here, each of them would occupy
  // a database connection. After the code is spent, all waiting uses are refused at once.
  const queue = createCoalescingQueue<string>(isShared)
  const now = () => new Date(clock.now())

  async function redeemToken<T>(
    id: string,
    purpose: CodeKind,
    token: string,
    work: Work<T>,
  ): Promise<T | 'gone'> {
    const row = await codes.findLive(id, now())
    if (row?.purpose !== purpose) return 'gone'
    if (!(await derivation.isToken(row, token))) throw new Refusal('code_invalid')
    return (await work(row, now())) ?? 'gone'
  }

  async function tryCode<T>(
    owner: CodeOwner,
    purpose: CodeKind,
    code: string,
    work: Work<T>,
  ): Promise<T | 'gone'> {
    const row = await codes.countTry(owner, purpose, now())
    if (row === undefined) return 'gone'
    if (!(await derivation.isCode(row, code))) throw new Refusal('code_invalid')
    try {
      return (await work(row, now())) ?? 'gone'
    } finally {
      // The code was correct, so this try must not count. If `work` failed, for example because the hashing queue was
      // full, the user may try the same code again. If the store fails here, the try stays counted.
      await codes.uncountTry(row.id).catch(() => {})
    }
  }

  return async <T>(purpose: CodeKind, submitted: SubmittedCode, work: Work<T>) => {
    const id = 'token' in submitted ? idOfToken(submitted.token) : undefined
    if ('token' in submitted && id === undefined) throw new Refusal('code_invalid')
    const result = await ('code' in submitted
      ? queue.run(JSON.stringify([purpose, submitted.owner]), () =>
          tryCode(submitted.owner, purpose, submitted.code, work),
        )
      : queue.run(JSON.stringify([purpose, id]), () =>
          redeemToken(String(id), purpose, submitted.token, work),
        ))
    if (result === 'gone') throw new Refusal('code_invalid')
    return result
  }
}

/**
 * Returns whether all waiting requests must fail with the same error. The result is false if the error concerns only
 * one request, for example because the new password in that request is invalid.
 */
function isShared(error: unknown): boolean {
  return !(error instanceof Refusal) || error.code === 'service_unavailable'
}
