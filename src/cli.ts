#!/usr/bin/env node
// The command `peage`: calls `run` and exits with the code it returns.
import module from 'node:module'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

// From Node 22 on, what it has compiled is kept for the next start, which takes a seventh less of CPU then. Node's default
// folder is shared by all users of the machine, and any of them could replace our code there; this one is the program's.
const { env } = process
env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('../dist/compile-cache', import.meta.url))
// The types are those of Node 20. Workers, whose environment is this one, need no call.
const { enableCompileCache } = module as { enableCompileCache?: (folder: string) => void }
enableCompileCache?.(env.NODE_COMPILE_CACHE)

// Loading the rest takes most of a start, and a SIGHUP would kill the process meanwhile. Ignoring it loses nothing,
// because the start reads the configuration anyway.
if (process.argv[2] === 'start') process.on('SIGHUP', () => {})
const { run } = await import('./commands/run.ts')
const { stdin, stdout, stderr } = process
process.exitCode = await run(process.argv.slice(2), { env, cwd: process.cwd(), stdin, stdout, stderr })
// Nothing should keep a gateway's process alive now, whether it has stopped or could not start.
if (process.argv[2] === 'start') setTimeout(() => process.exit(), 100).unref()
