// A step of `npm run build`: bundles the programs of `src`, with the packages that they use, into few files of `dist`: a
// start that reads each module by itself takes twice the CPU time. The packages' versions are those of `node_modules`.
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const source = fileURLToPath(new URL('../src/', import.meta.url))
const target = fileURLToPath(new URL('../dist/', import.meta.url))
/** Packages that stay outside. */
const external = [
  // They look for their binary, and for the database in WebAssembly, beside them.
  'argon2',
  '@electric-sql/pglite',
  // What fastify and pg load where it is asked for, and nobody asks.
  '@fastify/ajv-compiler',
  '@fastify/fast-json-stringify-compiler',
  'light-my-request',
  'pg-native',
]

/** The packages' CommonJS modules load Node's own by `require`, which an ES module has not. */
const banner = `import { createRequire as createBundleRequire } from 'node:module'
const require = createBundleRequire(import.meta.url)`

const programs = ['cli.ts', 'worker.ts', 'config/reading/load-process.ts']

/** Modules that look for files from where they are, which in a bundle is the folder above. @type {Set<string>} */
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

mkdirSync(target, { recursive: true })
for (const { name } of readdirSync(target, { withFileTypes: true }).filter(entry => entry.isFile())) {
  rmSync(join(target, name))
}
const { metafile } = await build({
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
  logLevel: 'warning',
})
for (const [file, { inputs }] of Object.entries(metafile.outputs)) {
  const lost = Object.keys(inputs).find(input => placed.has(join(process.cwd(), input)))
  const isBelow = relative(target, file).includes('/')
  if (lost !== undefined && isBelow) throw new Error(`${lost} looks for files, and is bundled into ${file}`)
}
