// The part of Node's global that is used here; @types/node 20 leaves it to the browser's types, which the console has.
declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array)
  }
}
