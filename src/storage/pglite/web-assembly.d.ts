// Declares the part of Node's global `WebAssembly` that the gateway uses. @types/node 20 does not declare it, but
// relies on the types of the browser. Only the console has those types.
declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array)
  }
}
