// Registers accounts and logs users in. The order of the checks decides which error the client gets.
import { type Bilingual, messages } from '../refusals/catalog.ts'
import { Refusal } from '../refusals/refusal.ts'
import { StorageError } from '../storage/database.ts'
import type { Plan } from '../users/user.ts'
import type { UserStore } from '../users/user-store.ts'
import { isFindableEmail, isStorableEmail, normalizeEmail, unnormalizedEmail } from './email.ts'
import type { Passwords } from './password.ts'
import type { ValidateNewPassword } from './password-rules.ts'
import type { Sessions, SignedIn } from './sessions.ts'

/** The credentials as the client sent them. But a value that is not a string is replaced with an empty string. */
interface SubmittedCredentials {
  email: string
  password: string
}

export interface Accounts {
  /**
   * @throws Refusal `email_invalid`, `password_too_short`, `password_too_long`, `password_too_common`, `email_taken`;
   *   `internal` if the store fails or an inactive account has the email; `service_unavailable` if the hashing queue is
   *   full
   */
  register(submitted: SubmittedCredentials): Promise<{ message: Bilingual; user_id: number }>
  /**
   * @param userAgent the header `User-Agent`, which the user sees in the list of sessions
   * @throws Refusal `credentials_missing`, `credentials_invalid`; `service_unavailable` if the hashing queue is full;
   *   StorageError
   */
  login(submitted: SubmittedCredentials, userAgent?: string): Promise<SignedIn>
}

interface Dependencies {
  users: UserStore
  /** The plan of new accounts. */
  firstPlan: Plan
  passwords: Passwords
  validateNewPassword: ValidateNewPassword
  sessions: Sessions
}

export function createAccounts({
  users,
  firstPlan,
  passwords,
  validateNewPassword,
  sessions,
}: Dependencies): Accounts {
  /** Registrations in progress, by email. */
  const pendingRegistrations = new Map<string, Promise<number>>()

  async function create(email: string, password: string): Promise<number> {
    if (await users.activeEmailExists(email)) throw new Refusal('email_taken')
    const created = await users.create(email, await passwords.hash(password), { plan: firstPlan })
    if (created.outcome === 'created') return created.id
    // The email is taken: either another replica registered it first, or an inactive account has it. The second query
    // finds out which.
    throw new Refusal((await users.activeEmailExists(email)) ? 'email_taken' : 'internal')
  }

  /**
   * Searches for the email without Unicode normalization, because version 0.1 stored emails in this form. If no account
   * has it, searches for the normalized email.
   */
  async function findPasswordRecord(typed: string, email: string) {
    const found =
      typed !== email && isFindableEmail(typed) ? await users.findPasswordRecord(typed) : undefined
    return found ?? (isFindableEmail(email) ? users.findPasswordRecord(email) : undefined)
  }

  /** Replaces a hash that was imported, or that is weaker than new hashes. */
  async function strengthenHash(
    { id, password_hash: checked }: { id: number; password_hash: string },
    password: string,
  ): Promise<void> {
    const next = await passwords.strengthen(checked, password)
    if (next !== undefined) await users.replaceHash(id, { checked, next })
  }

  return {
    async register({ email: raw, password }) {
      const email = normalizeEmail(raw)
      if (!isStorableEmail(email)) throw new Refusal('email_invalid')
      validateNewPassword(password, email)

      // Concurrent registrations of the same email compute only one hash. The later registrations wait for the first
      // registration. If it fails, they fail with the same error.
      const pendingRegistration = pendingRegistrations.get(email)
      if (pendingRegistration !== undefined) {
        await pendingRegistration
        throw new Refusal('email_taken')
      }
      const creation = create(email, password)
        .catch(rethrowAsInternal)
        .finally(() => pendingRegistrations.delete(email))
      pendingRegistrations.set(email, creation)
      return { message: messages.registered, user_id: await creation }
    },

    async login({ email: raw, password }, userAgent) {
      const email = normalizeEmail(raw)
      if (email === '' || password === '') throw new Refusal('credentials_missing')
      const found = await findPasswordRecord(unnormalizedEmail(raw), email)
      const user = found?.is_active === 1 ? found : undefined
      const isPasswordRight = await passwords.verify(user?.password_hash, password)
      if (user === undefined || !isPasswordRight) throw new Refusal('credentials_invalid')
      const opened = await sessions.create(user.id, user.session_epoch, userAgent)
      if (opened === 'user_inactive') throw new Refusal('credentials_invalid')
      // The session already exists, so the login succeeds even if the hash cannot be replaced. A later login tries
      // again.
      await strengthenHash(user, password).catch(() => {})
      return opened
    },
  }
}

// Turns a StorageError into the error `internal`, so that the registration responds with 500. Every other endpoint
// responds to a StorageError with 503.
function rethrowAsInternal(error: unknown): never {
  throw error instanceof StorageError ? new Refusal('internal', { cause: error }) : error
}
