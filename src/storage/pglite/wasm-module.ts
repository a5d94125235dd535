// PGlite's WebAssembly, compiled for a small process: once, and by V8's quick compiler alone.
import { readFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'

declare global {
  /** The part of Node's global that is used here; @types/node 20 leaves it to the browser's types. */
  namespace WebAssembly {
    class Module {
      constructor(bytes: Uint8Array)
    }
  }
}

let compiled: WebAssembly.Module | undefined

/** The module that all databases of this process share. */
export function pgliteModule(): WebAssembly.Module {
  compiled ??= compileUnoptimised(readFileSync(wasmFile()))
  return compiled
}

/**
 * V8's optimising compiler takes up to 600 MB to compile Postgres' largest functions a second time, and more CPU time
 * at each start than the faster code ever saves: statements take as long without it. Whether a module may be optimised
 * function by function is set when it is compiled (`wasm-dynamic-tiering`), so that other modules, such as undici's
 * parser, still are. Without `wasm-tier-up`, a module that is not may not be optimised as a whole either.
 */
export function compileUnoptimised(wasm: Uint8Array): WebAssembly.Module {
  setFlagsFromString('--no-wasm-tier-up')
  setFlagsFromString('--no-wasm-dynamic-tiering')
  try {
    // Not `WebAssembly.compile`: no other module may be compiled meanwhile.
    return new WebAssembly.Module(wasm)
  } finally {
    setFlagsFromString('--wasm-dynamic-tiering')
  }
}

function wasmFile(): URL {
  return new URL('pglite.wasm', import.meta.resolve('@electric-sql/pglite'))
}
