// The secret before only reads: there must be one that encrypts (CONTRACT §1, `peage keys reseal`).
import { faultAt, type Sheet } from './document.ts'
import type { Fault } from './problem.ts'
import type { Shape } from './shape.ts'

interface Written {
  key_secret?: string
  key_secret_old?: string
}

/** Else everything new would be stored unencrypted by a file that was meant to change the secret. */
export function checkKeySecrets(sheet: Sheet, shape: Shape): Fault[] {
  const { auth } = sheet.value as { auth?: Written }
  const { key_secret: secret, key_secret_old: old = '' } = auth ?? {}
  if (old === '' || secret !== '' || !shape.sound('/auth')) return []
  return [
    faultAt(sheet, '/auth/key_secret_old', 'only reads: set auth.key_secret, which encrypts, beside it'),
  ]
}
