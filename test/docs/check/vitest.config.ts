import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    root: '.',
    include: ['test/docs/pages.check.ts'],
    testTimeout: 300_000,
    hookTimeout: 60_000,
  },
})
