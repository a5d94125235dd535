// The last step of `npm run build`. Loads the built code once to fill V8's compile cache, for a fast first start.
import { readdirSync, rmSync } from 'node:fs'
import module from 'node:module'
import { fileURLToPath } from 'node:url'

const dist = new URL('../dist/', import.meta.url)
const cache = fileURLToPath(new URL('compile-cache', dist))

// The cache of an earlier build is deleted, because it does not fit this build.
rmSync(cache, { recursive: true, force: true })
// Node 20 and its types do not have the function `enableCompileCache`.
const { enableCompileCache } = /** @type {{ enableCompileCache?: (folder: string) => unknown }} */ (
  /** @type {unknown} */ (module)
)
if (enableCompileCache !== undefined) {
  enableCompileCache(cache)
  // cli.js and worker.js are skipped, because loading them would start the program.
  /** @param {string} name */
  const isLoaded = name => name.endsWith('.js') && name !== 'cli.js' && name !== 'worker.js'
  for (const name of readdirSync(dist).filter(isLoaded)) await import(new URL(name, dist).href)
}
