// Imports a module of `build`. The path is computed, so that the compiler does not search for the module. Otherwise the
// compiler would fail before a build, because the module does not exist yet.

/** @param {string} name a path in `build` @returns {Promise<unknown>} */
export function importBuilt(name) {
  return import(new URL(`../build/${name}`, import.meta.url).href)
}
