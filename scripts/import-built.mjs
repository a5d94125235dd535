// Imports a module of `build` by a path that the compiler does not see. The compiler would fail, because the module
// does not exist before a build.

/** @param {string} name a path in `build` @returns {Promise<unknown>} */
export function importBuilt(name) {
  return import(new URL(`../build/${name}`, import.meta.url).href)
}
