// Checks that the files of `auth.keys` can sign; reported with line and column, before anything starts.

import { appendToPointer, type Diagnostic } from '../diagnostics.ts'
import { readJwk } from '../formats/private-jwk.ts'
import { maxValueBytes, type ReadFile } from '../read-file.ts'
import type { Validation } from '../validate.ts'
import { readErrorReason } from '../yaml/interpolate.ts'
import { diagnosticAt, type YamlSource } from '../yaml/yaml-source.ts'

/**
 * Reads the files with a valid entry.
 * @param validation what is already known to be invalid: nothing is concluded from it
 * @param readFile throws if it cannot
 */
export function checkKeyFiles(yaml: YamlSource, validation: Validation, readFile: ReadFile): Diagnostic[] {
  const { auth } = yaml.value as { auth?: { keys?: unknown } | null }
  const files: unknown[] = Array.isArray(auth?.keys) ? auth.keys : []
  /** The first entry with each `kid`. */
  const holders = new Map<string, string>()
  return files.flatMap((file, index) => {
    const pointer = appendToPointer('/auth/keys', index)
    if (typeof file !== 'string' || !validation.isValid(pointer)) return []
    const read = readKey(file, readFile)
    if ('error' in read) return [diagnosticAt(yaml, pointer, read.error)]
    const holder = holders.get(read.kid)
    if (holder === undefined) holders.set(read.kid, `auth.keys[${index}]`)
    // Tokens carry only the `kid`: half of them would be verified with the wrong key.
    else
      return [diagnosticAt(yaml, pointer, `names a key with the kid of ${holder}; each needs one of its own`)]
    return []
  })
}

function readKey(file: string, readFile: ReadFile): { kid: string } | { error: string } {
  let text: string
  try {
    text = readFile(file, maxValueBytes)
  } catch (error) {
    return { error: `cannot read the file ${JSON.stringify(file)} (${readErrorReason(error)})` }
  }
  const read = readJwk(text)
  return 'error' in read ? { error: `names a file that ${read.error}` } : read
}
