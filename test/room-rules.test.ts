// Writes files that break the import rules of the rooms (the folders of src), and tests that the linter reports each
// file.
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { floors } from '../scripts/rooms.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const biome = join(root, 'node_modules/@biomejs/biome/bin/biome')

/** Maps the path of each written file to the rules that the linter reports for it. */
let found: Map<string, Set<string>>
let folder: string

const rooms = floors.map((floor, index) => ({
  floor,
  hidden: floors.slice(0, index).flat(),
}))

function fileIn(room: string, name: string): string {
  return room.endsWith('.ts') ? `src/${room}` : `src/${room}/${name}.ts`
}

function specifier(from: string, room: string): string {
  const up = dirname(from) === 'src' ? './' : '../'
  return room.endsWith('.ts') ? `${up}${room}` : `${up}${room}/planted.ts`
}

async function plant(file: string, text: string): Promise<void> {
  await mkdir(dirname(join(folder, file)), { recursive: true })
  await writeFile(join(folder, file), text)
}

/** For each forbidden import, one file imports a value and another file imports a type. */
const planted: { file: string; text: string }[] = []
for (const { floor, hidden } of rooms) {
  for (const { name } of floor) {
    const others = [...hidden, ...floor.filter(other => other.name !== name)]
    others.forEach(({ name: other }, index) => {
      if (name.endsWith('.ts')) return
      for (const form of ['value', 'type'] as const) {
        const file = fileIn(name, `planted-${form}-${index}`)
        const path = specifier(file, other)
        const text =
          form === 'value'
            ? `import { x } from '${path}'\n\nexport const y = x\n`
            : `import type { X } from '${path}'\n\nexport type Y = X\n`
        planted.push({ file, text })
      }
    })
  }
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'peage-rooms-'))
  const config = JSON.parse(await readFile(join(root, 'biome.json'), 'utf8'))
  await plant('biome.json', JSON.stringify({ ...config, root: true, vcs: { enabled: false }, files: {} }))
  await plant('biome.rooms.json', await readFile(join(root, 'biome.rooms.json'), 'utf8'))
  for (const { file, text } of planted) await plant(file, text)
  await plant(
    'src/usage/circle-value-a.ts',
    "import { b } from './circle-value-b.ts'\n\nexport const a = () => b\n",
  )
  await plant(
    'src/usage/circle-value-b.ts',
    "import { a } from './circle-value-a.ts'\n\nexport const b = () => a\n",
  )
  await plant(
    'src/usage/circle-type-a.ts',
    "import type { B } from './circle-type-b.ts'\n\nexport type A = { b?: B }\n",
  )
  await plant(
    'src/usage/circle-type-b.ts',
    "import type { A } from './circle-type-a.ts'\n\nexport type B = { a?: A }\n",
  )
  await plant('src/usage/allowed.ts', "import { x } from '../users/planted.ts'\n\nexport const y = x\n")
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [biome, 'lint', '--reporter=json', '--max-diagnostics=none', '.'],
    { cwd: folder, maxBuffer: 64 * 1024 * 1024 },
  ).catch(error => error as { stdout: string })
  found = new Map()
  for (const { category, location } of JSON.parse(stdout).diagnostics) {
    const path = typeof location.path === 'string' ? location.path : location.path.file
    found.set(path, (found.get(path) ?? new Set()).add(category))
  }
})

afterAll(() => rm(folder, { recursive: true, force: true }))

it('if the order of the rooms forbids an import of a value or a type, the linter reports it', () => {
  expect(planted.length).toBeGreaterThan(300)
  const missed = planted.filter(({ file }) => !found.get(file)?.has('lint/style/noRestrictedImports'))
  expect(missed).toEqual([])
})

it('if the order of the rooms allows an import, the linter accepts it', () => {
  expect(found.get('src/usage/allowed.ts')?.has('lint/style/noRestrictedImports')).not.toBe(true)
})

it.each(['value', 'type'])('if two files import a %s from each other, the linter reports them', form => {
  expect(found.get(`src/usage/circle-${form}-a.ts`)).toContain('lint/suspicious/noImportCycles')
})
