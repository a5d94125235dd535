// Runs the tests that JUDGES selects against the mutants of MUTATED_ROOM.
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { judges } from './judges.ts'

const { MUTATED_ROOM = '', JUDGES = 'own' } = process.env

export default defineConfig({
  root: fileURLToPath(new URL('../..', import.meta.url)),
  test: {
    include: judges(MUTATED_ROOM, JUDGES),
    globalSetup: JUDGES === 'own' ? [] : ['test/support/global-setup.ts'],
    isolate: false,
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})
