// Part of `npm run build`: the console's page as hashed, compressed files in dist/console, with a list of them.
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { build } from 'esbuild'

const source = fileURLToPath(new URL('../console/', import.meta.url))
const target = fileURLToPath(new URL('../dist/console/', import.meta.url))

const types = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

const { outputFiles } = await build({
  entryPoints: [`${source}src/main.tsx`],
  outdir: target,
  entryNames: 'app-[hash]',
  bundle: true,
  minify: true,
  write: false,
  format: 'esm',
  target: 'es2022',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
})

const icon = readFileSync(`${source}icon.svg`)
/** @type {Map<string, Uint8Array>} */
const files = new Map(outputFiles.map(({ path, contents }) => [basename(path), contents]))
files.set(`icon-${createHash('sha256').update(icon).digest('hex').slice(0, 8)}.svg`, icon)

/** @param {string} extension */
const named = extension => [...files.keys()].find(name => name.endsWith(extension)) ?? ''
const page = readFileSync(`${source}index.html`, 'utf8').replace(
  /assets\/\w+(\.\w+)/g,
  (_, extension) => `assets/${named(extension)}`,
)

rmSync(target, { recursive: true, force: true })
mkdirSync(target, { recursive: true })
/** @param {string} name @param {Uint8Array} bytes */
function write(name, bytes) {
  writeFileSync(`${target}${name}`, bytes)
  writeFileSync(`${target}${name}.br`, brotliCompressSync(bytes))
  writeFileSync(`${target}${name}.gz`, gzipSync(bytes, { level: 9 }))
}
write('index.html', Buffer.from(page))
for (const [name, bytes] of files) write(name, bytes)
const assets = Object.fromEntries(
  [...files.keys()].map(name => [name, { type: types[name.slice(name.lastIndexOf('.'))] }]),
)
writeFileSync(`${target}manifest.json`, JSON.stringify({ page: 'index.html', assets }))
