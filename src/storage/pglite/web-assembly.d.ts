// Declares the part of Node's global `WebAssembly` that the gateway uses. @types/node 20 does not declare it, because
// it relies on the types of the browser. In this repository, only the console is compiled with those types.
declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array)
  }
}
