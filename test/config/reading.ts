// Loads a configuration from a text instead of a file.

import { formatDiagnostic, type LocatedDiagnostic } from '../../src/config/diagnostics.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { Config } from '../../src/config/sections/schema.ts'

type Env = Record<string, string | undefined>

export function load(text: string, env: Env = {}, files: Record<string, string> = {}) {
  return loadConfig({
    file: 'gateway.yaml',
    env,
    cores: 4,
    readFile: path => {
      if (path === 'gateway.yaml') return text
      if (Object.hasOwn(files, path)) return files[path] as string
      throw Object.assign(new Error('gone'), { code: 'ENOENT' })
    },
  })
}

function problemsIn(
  text: string,
  env: Env = {},
  files: Record<string, string> = {},
): readonly LocatedDiagnostic[] {
  const loaded = load(text, env, files)
  return 'problems' in loaded ? loaded.problems : []
}

/** Returns the problems as `check` prints them, but without the file name. */
export function linesOf(text: string, env: Env = {}, files: Record<string, string> = {}): string[] {
  return problemsIn(text, env, files).map(problem => formatDiagnostic(problem).replace('gateway.yaml:', ''))
}

export function configOf(text: string, env: Env = {}, files: Record<string, string> = {}): Config {
  const loaded = load(text, env, files)
  if ('problems' in loaded) throw new Error(loaded.problems.map(formatDiagnostic).join('\n'))
  return loaded.config
}
