// A step of `npm run build`. Bundles `console/` into `dist/console`, adds a hash to the name of each asset, and
// compresses each file.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { removeOthers, replaceFile } from './replace-files.mjs'

const source = fileURLToPath(new URL('../console/', import.meta.url))
const target = fileURLToPath(new URL('../dist/console/', import.meta.url))

/** @type {Readonly<Record<string, string>>} */
const types = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml; charset=utf-8',
}

const { outputFiles } = await build({
  entryPoints: ['main.tsx', 'style.css'].map(name => join(source, name)),
  outdir: target,
  bundle: true,
  write: false,
  minify: true,
  format: 'esm',
  target: ['chrome109', 'firefox115', 'safari16'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
  logLevel: 'warning',
})

/** @type {Record<string, { type: string | undefined }>} */
const assets = {}
const written = new Set()
const hashed = new Map()
const bodies = new Map(outputFiles.map(({ path, contents }) => [basename(path), Buffer.from(contents)]))
bodies.set('icon.svg', readFileSync(join(source, 'icon.svg')))
for (const [name, body] of bodies) {
  const [stem, extension] = [name.slice(0, name.lastIndexOf('.')), name.slice(name.lastIndexOf('.'))]
  const digest = createHash('sha256').update(body).digest('hex').slice(0, 16)
  const file = `${stem}-${digest}${extension}`
  writeCompressed(file, body)
  assets[file] = { type: types[extension] }
  hashed.set(name, `/console/assets/${file}`)
}
const page = readFileSync(join(source, 'page.html'), 'utf8').replace(/\{([\w.]+)\}/g, (_, name) => {
  if (!hashed.has(name)) throw new Error(`page.html refers to ${name}, but no such file was built`)
  return hashed.get(name)
})
writeCompressed('page.html', Buffer.from(page))
// The manifest is written last, so that every file that it lists exists.
write('manifest.json', JSON.stringify({ page: 'page.html', assets }))
removeOthers(target, path => written.has(path))

/** @param {string} name @param {Buffer} body */
function writeCompressed(name, body) {
  write(name, body)
  write(`${name}.gz`, gzipSync(body, { level: 9 }))
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: body.length }
  write(`${name}.br`, brotliCompressSync(body, { params }))
}

/** @param {string} name @param {string | Buffer} body */
function write(name, body) {
  replaceFile(join(target, name), body)
  written.add(join(target, name))
}
