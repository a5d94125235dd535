// Reads files of the repository for tests, mainly the files in deploy/.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseAllDocuments, parse as parseYaml } from 'yaml'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { Config } from '../../src/config/sections/schema.ts'

/** Returns the absolute path of a file. @param path relative to the repository's root */
export function pathOf(path: string): string {
  return fileURLToPath(new URL(`../../${path}`, import.meta.url))
}

export function read(path: string): string {
  return readFileSync(pathOf(path), 'utf8')
}

// biome-ignore lint/suspicious/noExplicitAny: other programs define the shapes of these manifests
export type Manifest = any

export function yamlOf(path: string): Manifest {
  return parseYaml(read(path))
}

/** Returns all YAML documents of a file. */
export function documentsOf(path: string): Manifest[] {
  return parseAllDocuments(read(path)).map(document => document.toJS())
}

/**
 * Loads a complete gateway.yaml as `peage check` does.
 * @param secrets the files that `${file:…}` may include. The keys are the paths, and the values are the contents.
 * @throws an error with all problems if the configuration is invalid
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

/** Returns a valid value for each secret in the folder. The keys of the result are the paths of the secrets. */
export function secretsIn(folder: string, names: readonly string[]): Record<string, string> {
  const values: Record<string, string> = {
    database_url: 'postgres://peage:x@postgres:5432/peage',
    redis_url: 'redis://redis:6379',
  }
  return Object.fromEntries(
    names.map(name => [`${folder}/${name}`, values[name] ?? 'a-secret-of-32-characters-012345']),
  )
}

/** Converts a duration, for example `30s`, `5min` or `2m`, to seconds. */
export function seconds(text: string): number {
  const [, number, unit = ''] = /^(\d+)(s|min|m)$/.exec(text) ?? []
  return Number(number) * (unit === 's' ? 1 : 60)
}
