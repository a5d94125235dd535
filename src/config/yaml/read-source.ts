// Reads a YAML file into values and their locations. If the file cannot be read or parsed, returns the errors.
import { type Diagnostic, locateDiagnostics, type Problems } from '../diagnostics.ts'
import { inUtf8, maxFileBytes, type ReadFile, readErrorReason, readLimited } from '../read-file.ts'
import { interpolate } from './interpolate.ts'
import { parseYaml, type YamlSource } from './yaml-source.ts'

export interface SourceFile {
  readonly file: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Reads the file itself and the files that `${file:PATH}` references. */
  readonly readFile?: ReadFile | undefined
}

interface ReadSource {
  readonly yaml: YamlSource
  readonly text: string
}

/**
 * @param keys the valid top-level keys, for the error message of an empty file
 * @param whenMissing the advice for the error message if the file does not exist
 */
export function readSource(
  source: SourceFile,
  keys: readonly string[],
  whenMissing?: string,
): ReadSource | Problems {
  const { file, env, readFile = readLimited } = source
  // ASCII text in UTF-16 without a byte order mark is also valid UTF-8, but contains NUL. YAML does not allow NUL. So
  // each NUL is replaced with U+FFFD, which `inUtf8` refuses.
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
        : [wholeFile(`${reason}; valid keys: ${keys.join(', ')}`)]
    return locateDiagnostics(file, text, diagnostics)
  }
  return { yaml, text }
}

function wholeFile(message: string): Diagnostic {
  return { offset: 0, path: '', message }
}
