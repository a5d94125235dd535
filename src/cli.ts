#!/usr/bin/env node
// The command `peage`: hands the process to `run` and exits with what it says.
import process from 'node:process'

// To load the rest takes most of a start, and a SIGHUP would end the process meanwhile: what it asks for is done anyway.
if (process.argv[2] === 'start') process.on('SIGHUP', () => {})
const { run } = await import('./commands/run.ts')
const { env, stdin, stdout, stderr } = process
process.exitCode = await run(process.argv.slice(2), { env, cwd: process.cwd(), stdin, stdout, stderr })
