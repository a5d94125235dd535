#!/usr/bin/env node
// Runs the command `peage`, and exits with its exit code.
import module from 'node:module'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

// From Node 22 on, compiled code is kept for the next start, which then uses a seventh less CPU. All users of the
// machine share Node's default folder, and any of them could replace the code there. So the program uses its own
// folder.
const { env } = process
env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('../dist/compile-cache', import.meta.url))
// The types are from Node 20. Workers inherit this environment and need no call.
const { enableCompileCache } = module as { enableCompileCache?: (folder: string) => void }
enableCompileCache?.(env.NODE_COMPILE_CACHE)

// Loading the rest takes most of the start, and a SIGHUP would kill the process during that time. The signal can be
// ignored, because the start reads the configuration anyway.
if (process.argv[2] === 'start') process.on('SIGHUP', () => {})
const { run } = await import('./commands/run.ts')
const { stdin, stdout, stderr } = process
process.exitCode = await run(process.argv.slice(2), { env, cwd: process.cwd(), stdin, stdout, stderr })
// From now on, nothing should keep the process of a gateway running, after a stop or a failed start.
if (process.argv[2] === 'start') setTimeout(() => process.exit(), 100).unref()
