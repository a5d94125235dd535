// Compiles PGlite's WebAssembly once per process.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

let compiled: WebAssembly.Module | undefined

/** Returns the module that all databases of this process share. */
export function pgliteModule(): WebAssembly.Module {
  compiled ??= new WebAssembly.Module(readFileSync(wasmFile()))
  return compiled
}

/** Returns a digest that identifies this build of Postgres, independent of its version number. */
export function pgliteDigest(): string {
  return createHash('sha256').update(readFileSync(wasmFile())).digest('hex')
}

function wasmFile(): URL {
  return new URL('pglite.wasm', import.meta.resolve('@electric-sql/pglite'))
}
