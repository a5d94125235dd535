// Reads a file into values and their locations, or into the errors that prevent it.
import { type Diagnostic, locateDiagnostics, type Problems } from '../diagnostics.ts'
import { inUtf8, maxFileBytes, type ReadFile, readErrorReason, readLimited } from '../read-file.ts'
import { interpolate } from './interpolate.ts'
import { parseYaml, type YamlSource } from './yaml-source.ts'

export interface SourceFile {
  /** As named on the command line, and in diagnostics. */
  readonly file: string
  /** Where `${NAME}` is looked up. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Reads the file itself and those that `${file:PATH}` names. */
  readonly readFile?: ReadFile | undefined
}

interface ReadSource {
  readonly yaml: YamlSource
  readonly text: string
}

/**
 * @param keys the valid top-level keys, for the message about a file that has none
 * @param whenMissing what to do if there is no such file
 */
export function readSource(
  source: SourceFile,
  keys: readonly string[],
  whenMissing?: string,
): ReadSource | Problems {
  const { file, env, readFile = readLimited } = source
  // ASCII in UTF-16 without a byte order mark is valid UTF-8 with NUL characters, which YAML does not allow.
  const readYaml: ReadFile = (path, maxBytes) => readFile(path, maxBytes).replaceAll('\0', '\uFFFD')
  let text: string
  try {
    text = inUtf8(readYaml)(file, maxFileBytes).replace(/^\uFEFF/, '')
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
    const remedy = isMissing && whenMissing !== undefined ? `; ${whenMissing}` : ''
    return locateDiagnostics(file, '', [wholeFile(`cannot be read (${readErrorReason(error)})${remedy}`)])
  }
  const yaml = parseYaml(text, (scalar, room) => interpolate(scalar, { env, readFile, room }))
  if (Array.isArray(yaml)) return locateDiagnostics(file, text, yaml)
  if (typeof yaml.value !== 'object' || yaml.value === null || Array.isArray(yaml.value)) {
    const reason = yaml.value === null ? 'is empty' : 'must be a mapping'
    const diagnostics =
      yaml.diagnostics.length > 0
        ? yaml.diagnostics
        : [wholeFile(`${reason}; its keys are ${keys.join(', ')}`)]
    return locateDiagnostics(file, text, diagnostics)
  }
  return { yaml, text }
}

function wholeFile(message: string): Diagnostic {
  return { offset: 0, path: '', message }
}
