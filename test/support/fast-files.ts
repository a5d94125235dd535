// Finds the test files for `npm run test:fast`. These files import nothing that opens sockets or starts programs.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * Imports that make a test file slow. With these imports, a file can open sockets, start programs, start a whole
 * gateway, or use the servers of the run.
 */
const slow = [
  /^import (?!type )[^;]*? from 'node:(?:child_process|cluster|dgram|http|http2|https|net|tls|worker_threads)'/m,
  /^import (?!type )[^;]*? from '(?:undici|ws|[./]+\/src\/server\/start-server\.ts)'/m,
  /^import \{[^}]*\binject\b[^}]*\} from 'vitest'/m,
]

/** Matches the imports of other files. Type imports do not match, because they do not exist at run time. */
const imported = /\b(?:(?:import|export) (?!type )[^;']*?\bfrom |import ?\(?)'(\.[^']+\.ts)'/g

/** Returns the fast files of the test folder. A file is slow if one of its direct or indirect imports is slow. */
export function fastTestFiles(folder: string): string[] {
  const helpers = new Map<string, { isSlow: boolean; imports: string[] }>()

  function read(file: string): { isSlow: boolean; imports: string[] } {
    const known = helpers.get(file)
    if (known !== undefined) return known
    const text = readFileSync(file, 'utf8')
    const imports = [...text.matchAll(imported)].map(([, path = '']) => join(dirname(file), path))
    const helper = {
      isSlow: slow.some(pattern => pattern.test(text)),
      imports: imports.filter(path => path.startsWith(folder)),
    }
    helpers.set(file, helper)
    return helper
  }

  function isFast(file: string): boolean {
    const reached = new Set([file])
    for (const path of reached) {
      const { isSlow, imports } = read(path)
      if (isSlow) return false
      for (const next of imports) reached.add(next)
    }
    return true
  }

  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.test.ts') && isFast(join(folder, name)))
    .sort()
}
