// Signs users in with their account at another identity provider.
import { createHash } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import type { ProviderConfig } from '../../config/sections/schema.ts'
import { sha256Hex } from '../../identity/token-hash.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { Queryable } from '../../storage/database.ts'
import type { ExternalPerson, UsableIdToken } from '../../users/external-person.ts'
import type { Plan } from '../../users/user.ts'
import type { UserStore } from '../../users/user-store.ts'
import type { Passwords } from '../password.ts'
import type { Sessions, SignedIn } from '../sessions.ts'
import type { SignInCodeStore } from './sign-in-code-store.ts'
import {
  AccountExists,
  HashReplaced,
  type SignInOutcome,
  type SignInRequest,
  type SignInStore,
} from './sign-in-store.ts'

/** The proof that the account belongs to the user. A client sends it after the error `account_exists`. */
export interface SubmittedProof {
  /** Empty if the client sent no password. */
  readonly password: string
  /** Whether the client asks to remove the account's password. Always false if the client sent a password. */
  readonly reset: boolean
}

export interface SignInContext {
  readonly userAgent: string | undefined
  /** Runs a check of a password. A wrong password counts as a failed login with this email. */
  guess<T>(email: string, check: () => Promise<T>): Promise<T>
}

export interface ExternalSignIn extends SignedIn {
  readonly isNew: boolean
}

/**
 * Both methods throw StorageError if a store fails. They throw Refusal `provider_email_unverified`, `account_exists`,
 * `registration_closed` or `credentials_invalid`. They also throw Refusal `rate_limited` after too many wrong
 * passwords, and `service_unavailable` if the hashing queue is full. After these errors, the client can try again with
 * the same code or ID token. `exchange` lists the exceptions.
 */
export interface ExternalAccounts {
  /**
   * Signs in with the code that the page received. The code becomes invalid after a wrong verifier, the fifth wrong
   * password or a refused `reset`.
   * @throws Refusal `code_invalid`
   */
  exchange(
    submitted: { code: string; codeVerifier: string } & SubmittedProof,
    context: SignInContext,
  ): Promise<ExternalSignIn>
  /**
   * Signs in with an ID token that is already verified.
   * @throws Refusal `id_token_invalid` if the token was already used
   */
  signIn(
    verified: { person: ExternalPerson; idToken: UsableIdToken },
    provider: ProviderConfig,
    proof: SubmittedProof,
    context: SignInContext,
  ): Promise<ExternalSignIn>
}

interface Dependencies {
  store: SignInStore
  codes: SignInCodeStore
  users: Pick<UserStore, 'findPasswordRecord'>
  passwords: Pick<Passwords, 'verify'>
  sessions: Pick<Sessions, 'open'>
  /** Returns a configured provider by its name. */
  findProvider(name: string): ProviderConfig | undefined
  /** The plan of new accounts. */
  firstPlan: Plan
  clock: Clock
  /** Resolves when all changes stored so far are visible in every process. */
  changesVisible(): Promise<void>
}

/** The code or the ID token that the client sent, with the person whom it identifies. */
interface Presented {
  readonly person: ExternalPerson
  spend(tx: Queryable): Promise<void>
  /** Counts one try of a password. Call it before the check. @throws Refusal if the code is no longer valid */
  countTry?(): Promise<void>
  uncountTry?(): Promise<void>
}

export function createExternalAccounts(dependencies: Dependencies): ExternalAccounts {
  const { store, codes, users, passwords, sessions, findProvider, firstPlan, clock } = dependencies
  const { changesVisible } = dependencies
  const now = () => new Date(clock.now())

  async function decide(
    presented: Presented,
    { link, register }: ProviderConfig,
    { password, reset }: SubmittedProof,
    { userAgent, guess }: SignInContext,
  ): Promise<ExternalSignIn> {
    const { person, spend } = presented
    const request: SignInRequest<SignedIn> = {
      person,
      rules: { link, register, firstPlan },
      proof: reset ? 'reset' : undefined,
      spend,
      open: (tx, user) => sessions.open(tx, user, userAgent),
    }
    try {
      return await finish(await store.signIn(request, now()))
    } catch (error) {
      const { email } = person
      const mayHelp = error instanceof AccountExists && !error.isFinal && password !== ''
      if (!mayHelp || email === undefined) throw error
      return guess(email, async () => finish(await signInWithPassword(presented, request, email, password)))
    }
  }

  async function signInWithPassword(
    { countTry, uncountTry }: Presented,
    request: SignInRequest<SignedIn>,
    email: string,
    password: string,
  ): Promise<SignInOutcome<SignedIn>> {
    await countTry?.()
    try {
      for (;;) {
        const record = await users.findPasswordRecord(email)
        const isRight = await passwords.verify(record?.password_hash, password)
        if (record === undefined || !isRight) throw new Refusal('credentials_invalid')
        const proof = { checkedHash: record.password_hash }
        try {
          return await store.signIn({ ...request, proof }, now())
        } catch (error) {
          if (!(error instanceof HashReplaced)) throw error
        }
      }
    } catch (error) {
      const wasWrong = error instanceof Refusal && error.code === 'credentials_invalid'
      if (!wasWrong) await uncountTry?.()
      throw error
    }
  }

  async function finish({ session, isNew, hasChanged }: SignInOutcome<SignedIn>): Promise<ExternalSignIn> {
    if (hasChanged) await changesVisible()
    return { ...session, isNew }
  }

  return {
    async exchange({ code, codeVerifier, ...proof }, context) {
      const codeHash = sha256Hex(code)
      const found = await codes.find(codeHash, now())
      if (found === undefined) throw new Refusal('code_invalid')
      const { person, codeChallenge, idToken } = found
      const provider = findProvider(found.provider)
      if (challengeOf(codeVerifier) !== codeChallenge || provider?.issuer !== person.issuer) {
        await codes.delete(codeHash)
        throw new Refusal('code_invalid')
      }
      const presented: Presented = {
        person,
        async spend(tx) {
          const isSpent =
            (await codes.spendCode(tx, codeHash, now())) && (await codes.spendIdToken(tx, idToken))
          if (!isSpent) throw new Refusal('code_invalid')
        },
        async countTry() {
          if (!(await codes.countTry(codeHash, now()))) throw new Refusal('code_invalid')
        },
        uncountTry: () => codes.uncountTry(codeHash),
      }
      try {
        return await decide(presented, provider, proof, context)
      } catch (error) {
        if (!(error instanceof AccountExists)) throw error
        if (proof.reset) await codes.delete(codeHash)
        else if (!error.isFinal) await codes.extend(codeHash)
        throw error
      }
    },

    signIn({ person, idToken }, provider, proof, context) {
      const presented: Presented = {
        person,
        async spend(tx) {
          if (!(await codes.spendIdToken(tx, idToken)))
            throw new Refusal('id_token_invalid', { reason: 'used' })
        },
      }
      return decide(presented, provider, proof, context)
    },
  }
}

/** Returns the S256 challenge of a code verifier (RFC 7636 §4.2). */
function challengeOf(codeVerifier: string): string {
  return createHash('sha256').update(codeVerifier).digest('base64url')
}
