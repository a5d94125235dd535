// The files of deploy/ and their like, as the tests read them.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseAllDocuments, parse as parseYaml } from 'yaml'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { Config } from '../../src/config/sections/schema.ts'

/** @param path from the repository's root */
export function pathOf(path: string): string {
  return fileURLToPath(new URL(`../../${path}`, import.meta.url))
}

export function read(path: string): string {
  return readFileSync(pathOf(path), 'utf8')
}

// biome-ignore lint/suspicious/noExplicitAny: manifests of other programs, whose shapes are theirs
export type Manifest = any

export function yamlOf(path: string): Manifest {
  return parseYaml(read(path))
}

/** Every document of a file. */
export function documentsOf(path: string): Manifest[] {
  return parseAllDocuments(read(path)).map(document => document.toJS())
}

/**
 * A whole gateway.yaml, loaded as `peage check` does.
 * @param secrets what `${file:…}` finds, by path; any other is a problem, as it would be there
 * @throws with the problems
 */
export function configOf(path: string, secrets: Readonly<Record<string, string>>): Config {
  const loaded = loadConfig({
    file: path,
    env: {},
    readFile(name) {
      if (name === path) return read(path)
      if (name in secrets) return String(secrets[name])
      throw Object.assign(new Error(name), { code: 'ENOENT' })
    },
  })
  if ('problems' in loaded) throw new Error(loaded.problems.map(formatDiagnostic).join('\n'))
  return loaded.config
}

/** Secrets of these names in a folder, each with a value that its key takes. */
export function secretsIn(folder: string, names: readonly string[]): Record<string, string> {
  const values: Record<string, string> = {
    database_url: 'postgres://peage:x@postgres:5432/peage',
    redis_url: 'redis://redis:6379',
  }
  return Object.fromEntries(
    names.map(name => [`${folder}/${name}`, values[name] ?? 'a-secret-of-32-characters-012345']),
  )
}

/** Seconds of `30s`, `5min`, `2m`. */
export function seconds(text: string): number {
  const [, number, unit = ''] = /^(\d+)(s|min|m)$/.exec(text) ?? []
  return Number(number) * (unit === 's' ? 1 : 60)
}
