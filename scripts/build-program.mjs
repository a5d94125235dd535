// A step of `npm run build`. Bundles the programs of `src` and their packages from `node_modules` into a few files of
// `dist`. Without bundles, a start takes twice the CPU time.
import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { removeOthers, replaceFile } from './replace-files.mjs'

const source = fileURLToPath(new URL('../src/', import.meta.url))
const target = fileURLToPath(new URL('../dist/', import.meta.url))
/** The packages that stay outside the bundles. */
const external = [
  // These packages look for a binary or WebAssembly file in their own folder.
  'argon2',
  '@node-rs/bcrypt',
  '@electric-sql/pglite',
  // fastify and pg load these packages only for features that Péage does not use.
  '@fastify/ajv-compiler',
  '@fastify/fast-json-stringify-compiler',
  'light-my-request',
  'pg-native',
]

/**
 * The code that defines `require` at the start of each bundle. The bundle is an ES module, which has no `require`. But
 * CommonJS modules in the bundle use `require` to load Node's modules.
 */
const banner = `import { createRequire as createBundleRequire } from 'node:module'
const require = createBundleRequire(import.meta.url)`

const programs = ['cli.ts', 'worker.ts', 'config/load-worker.ts']

/**
 * The modules that find files relative to their own path. Bundling changes this path, so the plugin below corrects it.
 * @type {Set<string>}
 */
const placed = new Set()

/** @type {import('esbuild').Plugin} */
const keepPlaces = {
  name: 'keep places',
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const text = readFileSync(path, 'utf8')
      if (!text.includes('import.meta.url')) return undefined
      placed.add(path)
      const place = `./${relative(source, path).replace(/\.ts$/, '.js')}`
      const contents = text.replaceAll('import.meta.url', `new URL('${place}', import.meta.url)`)
      return { contents, loader: 'ts' }
    })
  },
}

const { metafile, outputFiles } = await build({
  entryPoints: programs.map(name => join(source, name)),
  outbase: source,
  outdir: target,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  external,
  banner: { js: banner },
  chunkNames: '[name]-[hash]',
  plugins: [keepPlaces],
  metafile: true,
  write: false,
  logLevel: 'warning',
})
for (const [file, { inputs }] of Object.entries(metafile.outputs)) {
  const lost = Object.keys(inputs).find(input => placed.has(join(process.cwd(), input)))
  const isBelow = relative(target, file).includes('/')
  if (lost !== undefined && isBelow)
    throw new Error(`${lost} locates files by its own path, but is bundled into ${file}`)
}

const outputs = outputFiles.map(({ path }) => path)
const programFiles = programs.map(name => join(target, name.replace(/\.ts$/, '.js')))
// Programs are written last, because they import the other files.
const ordered = outputFiles.toSorted((a, b) => programFiles.indexOf(a.path) - programFiles.indexOf(b.path))
for (const { path, contents } of ordered) {
  replaceFile(path, contents, path === join(target, 'cli.js') ? 0o755 : 0o644)
}
// These files come from other steps of the build and must stay.
const others = ['compile-cache', 'console', 'storage/pglite/prepared-database'].map(name =>
  join(target, name),
)
removeOthers(target, path => outputs.includes(path) || others.some(other => path.startsWith(other)))
