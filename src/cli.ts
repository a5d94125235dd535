#!/usr/bin/env node
// Runs the command `peage`, and exits with its exit code.
import module from 'node:module'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

// Node 22 and newer cache compiled code, so that the next start uses about one seventh less CPU time. By default, all
// users of the machine share one folder for this cache, and any of them could replace the code there. Therefore the
// program uses its own folder.
const { env } = process
env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('../dist/compile-cache', import.meta.url))
// The types of Node 20 do not contain `enableCompileCache`. Worker processes need not call this function, because they
// inherit the variable `NODE_COMPILE_CACHE`.
const { enableCompileCache } = module as { enableCompileCache?: (folder: string) => void }
enableCompileCache?.(env.NODE_COMPILE_CACHE)

// Most of the startup time passes while the other modules load. During this time, a SIGHUP would end the process. The
// signal can be ignored, because startup reads the configuration anyway.
if (process.argv[2] === 'start') process.on('SIGHUP', () => {})
const { run } = await import('./commands/run.ts')
const { stdin, stdout, stderr } = process
process.exitCode = await run(process.argv.slice(2), { env, cwd: process.cwd(), stdin, stdout, stderr })
// After a stop or a failed start, nothing should keep the process of a gateway running. If anything does, this timer
// ends the process.
if (process.argv[2] === 'start') setTimeout(() => process.exit(), 100).unref()
