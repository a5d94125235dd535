// The last step of `npm run build`: loads what was built once, so that the user's first start finds it compiled.
import { readdirSync, rmSync } from 'node:fs'
import module from 'node:module'
import { fileURLToPath } from 'node:url'

const dist = new URL('../dist/', import.meta.url)
const cache = fileURLToPath(new URL('compile-cache', dist))

// What Node kept of an earlier build is of no use.
rmSync(cache, { recursive: true, force: true })
// From Node 22 on, so the types of Node 20 lack it.
const { enableCompileCache } = /** @type {{ enableCompileCache?: (folder: string) => unknown }} */ (
  /** @type {unknown} */ (module)
)
if (enableCompileCache !== undefined) {
  enableCompileCache(cache)
  // The other two run when they are loaded.
  /** @param {string} name */
  const isLoaded = name => name.endsWith('.js') && name !== 'cli.js' && name !== 'worker.js'
  for (const name of readdirSync(dist).filter(isLoaded)) await import(new URL(name, dist).href)
}
