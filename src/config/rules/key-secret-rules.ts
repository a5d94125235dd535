// `auth.key_secret_old` only decrypts, so a secret that encrypts must be set too (CONTRACT §1, `peage keys reseal`).

import type { Diagnostic } from '../diagnostics.ts'
import type { Validation } from '../validate.ts'
import { diagnosticAt, type YamlSource } from '../yaml/yaml-source.ts'

interface Written {
  key_secret?: string
  key_secret_old?: string
}

/** Otherwise a file meant to change the secret would store everything new unencrypted. */
export function checkKeySecrets(yaml: YamlSource, validation: Validation): Diagnostic[] {
  const { auth } = yaml.value as { auth?: Written | null }
  const pointer = '/auth/key_secret_old'
  if (!auth?.key_secret_old || auth.key_secret !== '') return []
  if (!validation.isValid('/auth/key_secret') || !validation.isValid(pointer)) return []
  return [diagnosticAt(yaml, pointer, 'only reads: set auth.key_secret, which encrypts, beside it')]
}
