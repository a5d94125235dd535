// Checks that the gateway can sign with the files in `auth.keys`. Also checks the secrets that encrypt stored keys.
import { appendToPointer, type Diagnostic } from '../diagnostics.ts'
import { readJwk } from '../formats/private-jwk.ts'
import { maxValueBytes, type ReadFile, tryRead } from '../read-file.ts'
import type { Validation } from '../validate.ts'
import { diagnosticAt, type YamlSource } from '../yaml/yaml-source.ts'

export function checkKeyFiles(yaml: YamlSource, validation: Validation, readFile: ReadFile): Diagnostic[] {
  const { auth } = yaml.value as { auth?: { keys?: unknown } | null }
  const files: unknown[] = Array.isArray(auth?.keys) ? auth.keys : []
  /** Maps each `kid` to the first entry that has it. */
  const holders = new Map<string, string>()
  return files.flatMap((file, index) => {
    const pointer = appendToPointer('/auth/keys', index)
    if (typeof file !== 'string' || !validation.isValid(pointer)) return []
    const read = readKey(file, readFile)
    if ('error' in read) return [diagnosticAt(yaml, pointer, read.error)]
    const holder = holders.get(read.kid)
    if (holder === undefined) holders.set(read.kid, `auth.keys[${index}]`)
    // A token names its key only by the `kid`. If two keys had the same `kid`, some tokens would be verified with the
    // wrong key.
    else return [diagnosticAt(yaml, pointer, `has the same kid as ${holder}; each key needs a different kid`)]
    return []
  })
}

function readKey(file: string, readFile: ReadFile): { kid: string } | { error: string } {
  const { text, error } = tryRead(file, maxValueBytes, readFile)
  if (error !== undefined) return { error }
  const read = readJwk(text)
  return 'error' in read ? { error: `the file ${read.error}` } : read
}

/**
 * `auth.key_secret_old` is only for decryption, so `auth.key_secret` must be set too. Otherwise, all new keys would be
 * stored unencrypted.
 */
export function checkKeySecrets(yaml: YamlSource, validation: Validation): Diagnostic[] {
  const { auth } = yaml.value as { auth?: { key_secret?: string; key_secret_old?: string } | null }
  const pointer = '/auth/key_secret_old'
  if (!auth?.key_secret_old || auth.key_secret !== '') return []
  if (!validation.isValid('/auth/key_secret') || !validation.isValid(pointer)) return []
  return [diagnosticAt(yaml, pointer, 'is only for decryption; also set auth.key_secret for encryption')]
}
