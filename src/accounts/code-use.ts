// The use of a mail's code or token: tries at codes are counted before they are compared, and one use at a time goes on.
import { createTurns } from '../async/turns.ts'
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
  // A thousand tries at one code, or uses of one token, wait here and not for the row with a connection each; once there
  // is nothing to try any more, all that waited are told so at once.
  const turns = createTurns()
  const now = () => new Date(clock.now())

  async function useToken<T>(
    id: string,
    purpose: CodePurpose,
    token: string,
    work: (row: AccountCode, now: Date) => Promise<T | undefined>,
  ): Promise<T | 'wrong' | 'gone'> {
    const row = await codes.findLive(id, now())
    if (row?.purpose !== purpose) return 'gone'
    if (!(await derivation.isToken(row, token))) return 'wrong'
    return (await work(row, now())) ?? 'gone'
  }

  async function useCode<T>(
    owner: CodeOwner,
    purpose: CodePurpose,
    code: string,
    work: (row: AccountCode, now: Date) => Promise<T | undefined>,
  ): Promise<T | 'wrong' | 'gone'> {
    const row = await codes.countTry(owner, purpose, now())
    if (row === undefined) return 'gone'
    if (!(await derivation.isCode(row, code))) return 'wrong'
    try {
      return (await work(row, now())) ?? 'gone'
    } finally {
      // A right code is no guess: one that could not be used (the hashing queue was full) is as good as it was. Where the
      // store cannot tell now, one try less is left.
      await codes.uncountTry(row.id).catch(() => {})
    }
  }

  return {
    async run<T>(
      purpose: CodePurpose,
      presented: PresentedCode,
      use: (row: AccountCode, now: Date) => Promise<T | undefined>,
    ) {
      // What one request alone is refused for (its new password, say) is no answer to those that wait behind it.
      const work = (row: AccountCode, at: Date) =>
        use(row, at).catch((error: unknown) => {
          if (error instanceof Refusal && error.code !== 'service_unavailable') return error
          throw error
        })
      const id = 'token' in presented ? idOfToken(presented.token) : undefined
      if ('token' in presented && id === undefined) throw new Refusal('code_invalid')
      const result = await ('code' in presented
        ? turns.run(JSON.stringify([purpose, presented.owner]), () =>
            useCode(presented.owner, purpose, presented.code, work),
          )
        : turns.run(JSON.stringify([purpose, id]), () =>
            useToken(String(id), purpose, presented.token, work),
          ))
      if (result === 'wrong' || result === 'gone') throw new Refusal('code_invalid')
      if (result instanceof Refusal) throw result
      return result
    },
  }
}
