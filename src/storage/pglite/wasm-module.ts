// PGlite's WebAssembly, compiled for a small process: once, and by V8's quick compiler alone.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'

let compiled: WebAssembly.Module | undefined

/** The module that all databases of this process share. Call it inside `withoutOptimising`. */
export function pgliteModule(): WebAssembly.Module {
  compiled ??= new WebAssembly.Module(readFileSync(wasmFile()))
  return compiled
}

let running = 0

/**
 * Keeps V8's optimising compiler from the WebAssembly that `work` compiles and calls for the first time.
 *
 * It takes up to 600 MB to compile Postgres' largest functions a second time, and more CPU time at each start than the
 * faster code ever saves: statements take as long without it. Whether a function may be optimised is decided when its
 * module is compiled (Node 20) or when it is first called (Node 24), so that what comes after `work`, such as undici's
 * parser, still is. `wasm-tier-up` stays off, or modules that must not be optimised function by function would be
 * optimised as a whole instead; it has no effect on others.
 */
export async function withoutOptimising<T>(work: () => Promise<T>): Promise<T> {
  running += 1
  setFlagsFromString('--no-wasm-tier-up')
  setFlagsFromString('--no-wasm-dynamic-tiering')
  try {
    return await work()
  } finally {
    running -= 1
    if (running === 0) setFlagsFromString('--wasm-dynamic-tiering')
  }
}

/** Tells this Postgres from any other, whatever its version is called. */
export function pgliteDigest(): string {
  return createHash('sha256').update(readFileSync(wasmFile())).digest('hex')
}

function wasmFile(): URL {
  return new URL('pglite.wasm', import.meta.resolve('@electric-sql/pglite'))
}
