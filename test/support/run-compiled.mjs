// `run-compiled.mjs ENTRY.ts [flags]` compiles and runs a program, because Node 20 cannot run TypeScript. It also
// compiles the other files of the entry's folder, because the program may start them as processes.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const [entry = '', ...flags] = process.argv.slice(2)
const cache = join(root, 'node_modules/.cache/peage-test')
mkdirSync(cache, { recursive: true })
// The compiled files must be in a folder inside node_modules, so that they can import packages.
const out = mkdtempSync(join(cache, 'compiled-'))
const options =
  '--module nodenext --target es2023 --types node --skipLibCheck --noCheck --rewriteRelativeImportExtensions'
const folder = dirname(entry)
const programs = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
  .filter(file => file.endsWith('.ts') && !file.endsWith('.test.ts'))
  .map(file => join(folder, file))
let status = 1
try {
  execFileSync(
    process.execPath,
    [
      join(root, 'node_modules/typescript/bin/tsc'),
      ...programs,
      ...['--ignoreConfig', '--rootDir', '.', '--outDir', out, ...options.split(' ')],
    ],
    { cwd: root, stdio: 'inherit' },
  )
  // The program reads these files. For example, lent-database.ts computes a digest of the migrations.
  const read = [
    'assets',
    'dist',
    'migrations',
    'package.json',
    'package-lock.json',
    'src/storage/concurrent-indexes.ts',
    'test/support/certificates',
  ]
  for (const name of read) {
    mkdirSync(dirname(join(out, name)), { recursive: true })
    symlinkSync(join(root, name), join(out, name))
  }
  cpSync(join(root, 'test/security/corpus'), join(out, 'test/security/corpus'), { recursive: true })
  const main = join(out, entry.replace(/\.ts$/, '.js'))
  const child = spawn(process.execPath, [main, ...flags], { stdio: 'inherit' })
  // Signals are passed on to the program, so that it cleans up before this process exits.
  process.on('SIGINT', () => child.kill('SIGINT'))
  process.on('SIGTERM', () => child.kill('SIGTERM'))
  process.on('SIGHUP', () => child.kill('SIGHUP'))
  const [code] = await once(child, 'exit')
  status = code ?? 1
} finally {
  rmSync(out, { recursive: true, force: true })
}
process.exit(status)
