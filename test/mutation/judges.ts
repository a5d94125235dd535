// Which test files judge the mutants of a room.
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { fastTestFiles } from '../support/fast-files.ts'

const tests = fileURLToPath(new URL('..', import.meta.url))

/** They reach what the room's own do not, and cost more: they see only what its own left alive. Below `test`. */
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

/** @param reach `own`: the room's tests that are fast; `further`: those named here as well */
export function judges(room: string, reach: string): string[] {
  const own = fastTestFiles(tests).filter(file => file.startsWith(`${room}/`))
  const all = reach === 'own' ? own : [...own, ...(further[room] ?? [])]
  // Vitest ignores a name that is not there, and the score would drop without a word.
  const missing = all.filter(file => !file.includes('*') && !existsSync(`${tests}${file}`))
  if (missing.length > 0)
    throw new Error(`test/mutation/judges.ts names missing tests: ${missing.join(', ')}`)
  return all.map(file => `test/${file}`)
}
