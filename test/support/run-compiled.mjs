// Compiles an entry and what it needs, since Node 20 runs no TypeScript, and runs it: ENTRY.ts [its flags].
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const [entry, ...flags] = process.argv.slice(2)
const cache = join(root, 'node_modules/.cache/peage-test')
mkdirSync(cache, { recursive: true })
// Below node_modules, so that imports of packages are found.
const out = mkdtempSync(join(cache, 'compiled-'))
const options =
  '--module nodenext --target es2023 --types node --skipLibCheck --noCheck --rewriteRelativeImportExtensions'
let status = 1
try {
  execFileSync(
    process.execPath,
    [
      join(root, 'node_modules/typescript/bin/tsc'),
      entry,
      ...['--ignoreConfig', '--rootDir', '.', '--outDir', out, ...options.split(' ')],
    ],
    { cwd: root, stdio: 'inherit' },
  )
  // The last two name the embedded database that is lent (lent-database.ts).
  const read = [
    'assets',
    'migrations',
    'package.json',
    'package-lock.json',
    'src/storage/concurrent-indexes.ts',
  ]
  for (const name of read) symlinkSync(join(root, name), join(out, name))
  cpSync(join(root, 'test/security/corpus'), join(out, 'test/security/corpus'), { recursive: true })
  const main = join(out, entry.replace(/\.ts$/, '.js'))
  status = spawnSync(process.execPath, [main, ...flags], { stdio: 'inherit' }).status ?? 1
} finally {
  rmSync(out, { recursive: true, force: true })
}
process.exit(status)
