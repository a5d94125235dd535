// Compiles a TypeScript file and its imports to JavaScript, so that a test can run the file as a separate process.
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const OPTIONS =
  '--module nodenext --target es2023 --types node --skipLibCheck --noCheck --rewriteRelativeImportExtensions'

export interface Compiled {
  /** The path of the compiled entry. The folder with the compiled files contains no `migrations/`. */
  readonly file: string
  remove(): Promise<void>
}

/** @param entry path from the root of the repository, for example `test/storage/pglite/hold-data-dir.ts` */
export async function compile(entry: string): Promise<Compiled> {
  const cache = join(ROOT, 'node_modules/.cache/peage-test')
  await mkdir(cache, { recursive: true })
  // The compiled files must be in a folder inside node_modules, so that they can import packages.
  const outDir = await mkdtemp(join(cache, 'compiled-'))
  const flags = [entry, '--ignoreConfig', '--rootDir', '.', '--outDir', outDir, ...OPTIONS.split(' ')]
  await promisify(execFile)(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), ...flags], {
    cwd: ROOT,
  })
  return {
    file: join(outDir, entry.replace(/\.ts$/, '.js')),
    remove: () => rm(outDir, { recursive: true, force: true }),
  }
}
