// Runs `peage users import` with a text as its input, and reads the stored emails.
import type { Printed } from './peage.ts'
import type { Place } from './users-setup.ts'

/** A bcrypt hash of 60 characters. */
export const bcryptHash = '$2b$10$abcdefghijklmnopqrstuu5TTfCMxRsTDlp6/sTxm9VQYBTPFOFmC'

export type Given = Readonly<Record<string, unknown>>

export function jsonLines(users: readonly Given[]): string {
  return users.map(user => `${JSON.stringify(user)}\n`).join('')
}

export function importsOf({ users, inside }: Place) {
  const importText = (format: string, text: string | Uint8Array, words: readonly string[] = []) =>
    users(['import', '-', '--format', format, ...words], text)
  return {
    importJson: (given: readonly Given[], ...words: string[]) => importText('jsonl', jsonLines(given), words),
    importLines: (text: string | Uint8Array, ...words: string[]) => importText('jsonl', text, words),
    importCsv: (text: string | Uint8Array, ...words: string[]) => importText('csv', text, words),
    /** Deletes all users, and restarts the ids at 1. */
    clear: () =>
      inside(database =>
        database.query('truncate users, admin_audit, events, mails restart identity cascade'),
      ),
    emails: () =>
      inside(async database => {
        const rows = await database.query<{ email: string }>('select email from users order by id')
        return rows.map(({ email }) => email)
      }),
  }
}

/** The output of an import without faults. */
export function summary(read: number, created: number, skipped = 0): Printed {
  return { exit: 0, stdout: `${read} read, ${created} created, ${skipped} skipped, 0 faults\n`, stderr: '' }
}

/** Returns the lines of standard error. The file name `-` at the start of each line is removed. */
export function faultsOf({ stderr }: Printed): string[] {
  return stderr
    .split('\n')
    .filter(line => line !== '')
    .map(line => line.replace(/^-:/, ''))
}
