// Imports a module of `build` in a way that the compiler does not follow. The module does not exist before a build.

/** @param {string} name a path in `build` @returns {Promise<unknown>} */
export function importBuilt(name) {
  return import(new URL(`../build/${name}`, import.meta.url).href)
}
