#!/usr/bin/env node
// The command `peage`: hands the process to `run` and exits with what it says.
import process from 'node:process'
import { run } from './commands/run.ts'

const { env, stdin, stdout, stderr } = process
process.exitCode = await run(process.argv.slice(2), { env, cwd: process.cwd(), stdin, stdout, stderr })
