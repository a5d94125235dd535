// Selects the test files for the mutation tests of a room (a folder of src). Mutants are copies of this code with one
// small change.
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { fastTestFiles } from '../support/fast-files.ts'

const tests = fileURLToPath(new URL('..', import.meta.url))

/**
 * Slower test files for each room, as paths relative to `test`. They run only against mutants that survive the fast
 * tests of the room.
 */
const further: Readonly<Record<string, readonly string[]>> = {
  refusals: ['endpoints/user.test.ts'],
  gate: [
    'commands/explain.test.ts',
    'gate/guards/order.test.ts',
    'journeys/guards.test.ts',
    'journeys/cors.test.ts',
  ],
  usage: ['contracts/daily-counter.test.ts'],
  identity: ['identity/**/*.test.ts', 'composition/snapshot-resources.test.ts'],
  accounts: [
    'accounts/*.test.ts',
    'contracts/code-changes.test.ts',
    'journeys/email.test.ts',
    'journeys/own-account.test.ts',
    'journeys/password-change.test.ts',
    'journeys/password-reset.test.ts',
    'journeys/sessions.test.ts',
  ],
}

/**
 * @param reach `own` for the fast tests of the room; `further` for the fast tests and the slower tests in the list
 * `further`
 */
export function judges(room: string, reach: string): string[] {
  const own = fastTestFiles(tests).filter(file => file.startsWith(`${room}/`))
  const all = reach === 'own' ? own : [...own, ...(further[room] ?? [])]
  // Vitest ignores listed files that do not exist. Without this check, the mutation score would drop without an
  // explanation.
  const missing = all.filter(file => !file.includes('*') && !existsSync(`${tests}${file}`))
  if (missing.length > 0)
    throw new Error(`test/mutation/judges.ts lists missing test files: ${missing.join(', ')}`)
  return all.map(file => `test/${file}`)
}
