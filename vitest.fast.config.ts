// `npm run test:fast` runs the tests that open no socket and start no program. They need no servers.
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { fastTestFiles } from './test/support/fast-files.ts'

const folder = fileURLToPath(new URL('test/', import.meta.url))

export default defineConfig({
  test: {
    include: fastTestFiles(folder).map(file => `test/${file}`),
    setupFiles: ['test/support/no-sockets.ts'],
    maxWorkers: 2,
    isolate: false,
    testTimeout: 30_000,
  },
})
