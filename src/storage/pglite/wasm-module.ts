// PGlite's WebAssembly, compiled once for each process.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

let compiled: WebAssembly.Module | undefined

/** The module that all databases of this process share. */
export function pgliteModule(): WebAssembly.Module {
  compiled ??= new WebAssembly.Module(readFileSync(wasmFile()))
  return compiled
}

/** Tells this Postgres from any other, whatever its version is called. */
export function pgliteDigest(): string {
  return createHash('sha256').update(readFileSync(wasmFile())).digest('hex')
}

function wasmFile(): URL {
  return new URL('pglite.wasm', import.meta.resolve('@electric-sql/pglite'))
}
