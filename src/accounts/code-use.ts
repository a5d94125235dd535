// The use of a mail's code or token: tries at codes are counted before they are compared, and one use at a time goes on.
import { createKeyedMutex } from '../async/keyed-mutex.ts'
import type { Clock } from '../clock.ts'
import { type CodeDerivation, idOfToken } from '../mail/codes/code-derivation.ts'
import type { AccountCode, CodeOwner, CodePurpose, CodeStore } from '../mail/codes/code-store.ts'
import { Refusal } from '../refusals/refusal.ts'

/** Stripped. */
export type PresentedCode = { readonly token: string } | { readonly code: string; readonly owner: CodeOwner }

export interface CodeUse {
  /**
   * Runs `work` with the row that the token or code was made of.
   * @param work spends the row; returns undefined if another use has spent it
   * @throws Refusal `code_invalid` if the token or code is not right, or was spent; whatever `work` throws
   * @throws StorageError
   */
  run<T>(
    purpose: CodePurpose,
    presented: PresentedCode,
    work: (row: AccountCode, now: Date) => Promise<T | undefined>,
  ): Promise<T>
}

interface Dependencies {
  codes: Pick<CodeStore, 'countTry' | 'uncountTry' | 'findLive'>
  derivation: Pick<CodeDerivation, 'isCode' | 'isToken'>
  clock: Clock
}

export function createCodeUse({ codes, derivation, clock }: Dependencies): CodeUse {
  // A thousand uses of one token at once compute one hash, and wait here instead of in the pool of connections.
  const userMutex = createKeyedMutex()
  const now = () => new Date(clock.now())

  async function prove(purpose: CodePurpose, presented: PresentedCode): Promise<AccountCode | undefined> {
    if ('token' in presented) {
      const id = idOfToken(presented.token)
      const row = id === undefined ? undefined : await codes.findLive(id, now())
      const isRight = row?.purpose === purpose && (await derivation.isToken(row, presented.token))
      return isRight ? row : undefined
    }
    const row = await codes.countTry(presented.owner, purpose, now())
    return row !== undefined && (await derivation.isCode(row, presented.code)) ? row : undefined
  }

  return {
    async run(purpose, presented, work) {
      const row = await prove(purpose, presented)
      if (row === undefined) throw new Refusal('code_invalid')
      try {
        const result = await userMutex.run(row.user_id, async () =>
          (await codes.findLive(row.id, now())) === undefined ? undefined : work(row, now()),
        )
        if (result === undefined) throw new Refusal('code_invalid')
        return result
      } finally {
        // A right code is no guess: one that could not be used (the hashing queue was full) is as good as it was. Where
        // the store cannot tell now, one try less is left.
        if ('code' in presented) await codes.uncountTry(row.id).catch(() => {})
      }
    },
  }
}
