// `npm run cli-docs` writes docs/cli.md.
import { writeFileSync } from 'node:fs'
import process from 'node:process'
import { cliPage } from './cli-page.mjs'
import { importBuilt } from './import-built.mjs'

const { createProgram } = /** @type {typeof import('../src/commands/run.ts')} */ (
  await importBuilt('commands/run.js')
)
const { env, stdin, stdout, stderr } = process
const peage = await createProgram([], { env, cwd: process.cwd(), stdin, stdout, stderr })

writeFileSync(new URL('../docs/cli.md', import.meta.url), cliPage(peage))
