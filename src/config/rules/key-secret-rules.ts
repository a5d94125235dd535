// `auth.key_secret_old` only decrypts, so a secret that encrypts must be set too (CONTRACT §1, `peage keys reseal`).

import type { Diagnostic } from '../diagnostics.ts'
import type { Validation } from '../validate.ts'
import { diagnosticAt, type YamlSource } from '../yaml/yaml-source.ts'

interface Written {
  key_secret?: string
  key_secret_old?: string
}

/** Otherwise a file meant to change the secret would store everything new unencrypted. */
export function checkKeySecrets(sheet: YamlSource, shape: Validation): Diagnostic[] {
  const { auth } = sheet.value as { auth?: Written | null }
  const pointer = '/auth/key_secret_old'
  if (!auth?.key_secret_old || auth.key_secret !== '') return []
  if (!shape.isValid('/auth/key_secret') || !shape.isValid(pointer)) return []
  return [diagnosticAt(sheet, pointer, 'only reads: set auth.key_secret, which encrypts, beside it')]
}
