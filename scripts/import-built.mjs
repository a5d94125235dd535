// Imports a module of `build` without the compiler's knowledge, because it does not exist before the first build.

/** @param {string} name a path in `build` @returns {Promise<unknown>} */
export function importBuilt(name) {
  return import(new URL(`../build/${name}`, import.meta.url).href)
}
