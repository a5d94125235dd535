#!/usr/bin/env node
// The command `peage`: calls `run` and exits with the code it returns.
import './async/tick-record.ts'
import process from 'node:process'

// Loading the rest takes most of a start, and a SIGHUP would kill the process meanwhile. Ignoring it loses nothing,
// because the start reads the configuration anyway.
if (process.argv[2] === 'start') process.on('SIGHUP', () => {})
const { run } = await import('./commands/run.ts')
const { env, stdin, stdout, stderr } = process
process.exitCode = await run(process.argv.slice(2), { env, cwd: process.cwd(), stdin, stdout, stderr })
