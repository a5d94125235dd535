// Imports the records of a file in batches, and counts the results.
import { setImmediate } from 'node:timers/promises'
import type { ImportedUser, ImportOutcome, StoreUsers } from '../../../users/user-import-store.ts'
import { type MemberRules, readUser } from './members.ts'
import { type FileRecord, InvalidHeader, type Problem } from './record.ts'

/** The numbers of users. `problems` counts the users with at least one problem. */
export interface ImportCounts {
  read: number
  created: number
  skipped: number
  problems: number
}

interface ImportOptions {
  readonly records: AsyncIterable<FileRecord>
  readonly store: StoreUsers
  readonly plans: MemberRules['plans']
  /** Whether a user whose email already exists is skipped or reported as a problem. */
  readonly onConflict: 'skip' | 'fail'
  /** Updated after each problem and after each transaction. */
  readonly counts: ImportCounts
  /** After an abort, the running transaction is completed, and no other transaction starts. */
  readonly signal: AbortSignal
  printProblems(line: number, problems: readonly Problem[]): Promise<void>
}

/** The number of users in one transaction. */
const batchSize = 500

/** The number of users that are read between two turns of the event loop. */
const usersPerTurn = 25

/** @throws StorageError if the store fails; `counts` then includes the users that are already stored */
export async function importRecords(options: ImportOptions): Promise<void> {
  const { records, store, plans, onConflict, counts, signal, printProblems } = options
  let batch: { line: number; user: ImportedUser }[] = []
  /** The running transaction. While it runs, the users of the next transaction are read. */
  let storing: Promise<void> | undefined

  const fail = async (line: number, problems: readonly Problem[]) => {
    counts.problems += 1
    await printProblems(line, problems)
  }

  async function storeBatch(): Promise<void> {
    const stored = batch
    batch = []
    const outcomes = await store(stored.map(({ user }) => user))
    counts.read += stored.length
    for (const [n, { line }] of stored.entries()) {
      const outcome = outcomes[n] as ImportOutcome
      if (outcome === 'created') counts.created += 1
      else if (outcome === 'email_exists' && onConflict === 'skip') counts.skipped += 1
      else await fail(line, [conflicts[outcome]])
    }
  }

  try {
    for await (const record of records) {
      if (signal.aborted) break
      const { line } = record
      const user =
        'problem' in record
          ? { problems: [record.problem] }
          : readUser(record.members, { plans, now: Date.now() })
      if ('problems' in user) {
        counts.read += 1
        await fail(line, user.problems)
      } else {
        batch.push({ line, user })
        // Lets the event loop run, so that the running transaction can send its next statement.
        if (batch.length % usersPerTurn === 0) await setImmediate()
        if (batch.length === batchSize) {
          await storing
          if (signal.aborted) break
          storing = storeBatch()
          // Prevents an unhandled rejection. The next `await storing` throws the error.
          storing.catch(() => {})
        }
      }
    }
  } catch (error) {
    if (!(error instanceof InvalidHeader)) throw error
    // After a signal, the header may seem invalid, because the file was not read to its end.
    if (!signal.aborted) await fail(error.line, [error.problem])
  } finally {
    await storing
  }
  if (batch.length > 0 && !signal.aborted) await storeBatch()
}

const conflicts: Readonly<Record<Exclude<ImportOutcome, 'created'>, Problem>> = {
  email_exists: {
    member: 'email',
    text: 'A user with this email already exists. If it is the same user, use --on-conflict skip. Otherwise, remove one of them.',
  },
  id_taken: { member: 'id', text: 'Another user has this ID. Omit it, or use a free ID.' },
  identity_taken: {
    member: 'identities',
    text: 'Another user has one of these identities. Remove the identity from one of the two users.',
  },
}
