// Declares the used part of Node's global `WebAssembly`. @types/node 20 relies on the browser's types, which only the
// console has.
declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array)
  }
}
