// Runs tests against the mutants of a room (a folder of src). The variable MUTATED_ROOM selects the room, and JUDGES
// the tests.
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
