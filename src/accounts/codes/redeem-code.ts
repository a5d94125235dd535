// The use of a mail's code or token: tries at codes are counted before they are compared, and one use at a time goes on.
import { createCoalescingQueue } from '../../async/coalescing-queue.ts'
import type { Clock } from '../../clock.ts'
import type { CodeKind } from '../../mail/mail-kind.ts'
import { Refusal } from '../../refusals/refusal.ts'
import { type CodeDerivation, idOfToken } from './code-derivation.ts'
import type { AccountCode } from './code-issue-store.ts'
import type { CodeOwner, CodeRedemptionStore } from './code-redemption-store.ts'

/** Stripped of white space. */
export type SubmittedCode = { readonly token: string } | { readonly code: string; readonly owner: CodeOwner }

/**
 * Runs `work` with the row that the token or code was made of.
 * @param work spends the row; returns undefined if another use has spent it
 * @throws Refusal `code_invalid` if the token or code is not right, or was spent; whatever `work` throws
 * @throws StorageError
 */
export type RedeemCode = <T>(purpose: CodeKind, submitted: SubmittedCode, work: Work<T>) => Promise<T>

type Work<T> = (row: AccountCode, now: Date) => Promise<T | undefined>

interface Dependencies {
  codes: Pick<CodeRedemptionStore, 'countTry' | 'uncountTry' | 'findLive'>
  derivation: Pick<CodeDerivation, 'isCode' | 'isToken'>
  clock: Clock
}

export function createRedeemCode({ codes, derivation, clock }: Dependencies): RedeemCode {
  // A thousand uses of one code or token wait here, and not for its row with a connection each. Once the code is spent,
  // all that wait are refused at once.
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
      // A right code is no guess. If it could not be used (the hashing queue was full), it is as good as before. If the
      // store fails now, one try less is left.
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

/** A refusal that concerns one request only, for example its new password, is no result for those that wait behind it. */
function isShared(error: unknown): boolean {
  return !(error instanceof Refusal) || error.code === 'service_unavailable'
}
