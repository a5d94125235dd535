// Checks that the files which a `postgres://` address names for TLS can be read.

import { appendToPointer, type Diagnostic } from '../diagnostics.ts'
import { maxFileBytes, type ReadFile } from '../read-file.ts'
import type { Validation } from '../validate.ts'
import { readErrorReason } from '../yaml/interpolate.ts'
import { diagnosticAt, type YamlSource } from '../yaml/yaml-source.ts'

/** The driver reads them only when it connects. @param readFile throws if it cannot */
export function checkDatabaseFiles(
  yaml: YamlSource,
  validation: Validation,
  readFile: ReadFile,
): Diagnostic[] {
  const { storage } = yaml.value as { storage?: Record<string, unknown> | null }
  return (['postgres', 'postgres_listen'] as const).flatMap(key => {
    const pointer = appendToPointer('/storage', key)
    const address = storage?.[key]
    if (typeof address !== 'string' || address === '' || !validation.isValid(pointer)) return []
    const { searchParams } = new URL(address)
    return ['sslrootcert', 'sslcert', 'sslkey'].flatMap(name => {
      const file = searchParams.get(name)
      if (!file) return []
      try {
        readFile(file, maxFileBytes)
        return []
      } catch (error) {
        const message = `has the ${name} ${JSON.stringify(file)}, which cannot be read (${readErrorReason(error)})`
        return [diagnosticAt(yaml, pointer, message)]
      }
    })
  })
}
