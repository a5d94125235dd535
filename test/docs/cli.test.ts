// Tests that docs/cli.md is up to date and complete.
import { readFileSync } from 'node:fs'
import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { cliPage, exitCodes, leavesOf, nameOf, notes } from '../../scripts/cli-page.mjs'
import { createProgram } from '../../src/commands/run.ts'

const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() }
const peage = await createProgram([], { env: {}, cwd: '.', ...streams })

describe('docs/cli.md', () => {
  it('is the same as the output of `npm run cli-docs`', () => {
    expect(readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8')).toBe(cliPage(peage))
  })

  it('has exit codes for every existing command, and for no other command', () => {
    expect(Object.keys(exitCodes).sort()).toEqual(leavesOf(peage).map(nameOf).sort())
  })

  it('contains every note of scripts/cli-notes.md', () => {
    const page = cliPage(peage)
    expect([...notes].filter(([, text]) => text === '' || !page.includes(text))).toEqual([])
  })
})
