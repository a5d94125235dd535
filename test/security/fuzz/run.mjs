// Compiles main.ts and what it needs, since Node 20 runs no TypeScript, and runs it with the flags it was given.
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const cache = join(root, 'node_modules/.cache/peage-test')
mkdirSync(cache, { recursive: true })
// Below node_modules, so that imports of packages are found.
const out = mkdtempSync(join(cache, 'fuzz-'))
const options =
  '--module nodenext --target es2023 --types node --skipLibCheck --noCheck --rewriteRelativeImportExtensions'
let status = 1
try {
  execFileSync(
    process.execPath,
    [
      join(root, 'node_modules/typescript/bin/tsc'),
      'test/security/fuzz/main.ts',
      ...['--ignoreConfig', '--rootDir', '.', '--outDir', out, ...options.split(' ')],
    ],
    { cwd: root, stdio: 'inherit' },
  )
  symlinkSync(join(root, 'migrations'), join(out, 'migrations'))
  cpSync(join(root, 'test/security/corpus'), join(out, 'test/security/corpus'), { recursive: true })
  const main = join(out, 'test/security/fuzz/main.js')
  status = spawnSync(process.execPath, [main, ...process.argv.slice(2)], { stdio: 'inherit' }).status ?? 1
} finally {
  rmSync(out, { recursive: true, force: true })
}
process.exit(status)
