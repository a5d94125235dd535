// Imports a module of `build`, which the compiler must not read: it does not exist before the first build.

/** @param {string} name its path below `build` @returns {Promise<unknown>} */
export function importBuilt(name) {
  return import(new URL(`../build/${name}`, import.meta.url).href)
}
