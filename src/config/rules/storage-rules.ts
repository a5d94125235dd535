// What the addresses of `storage` demand of each other (CONTRACT §2).
import type { Diagnostic } from '../diagnostics.ts'
import type { Validation } from '../validate.ts'
import { diagnosticAt, type YamlSource } from '../yaml/yaml-source.ts'

/** With `postgres_listen` alone a gateway would start on the embedded database, and not on the server that is meant. */
export function checkStorage(yaml: YamlSource, validation: Validation): Diagnostic[] {
  const { storage } = yaml.value as { storage?: { postgres?: string; postgres_listen?: string } | null }
  const pointer = '/storage/postgres_listen'
  if (!storage?.postgres_listen || storage.postgres !== '') return []
  if (!validation.isValid('/storage/postgres') || !validation.isValid(pointer)) return []
  return [diagnosticAt(yaml, pointer, 'only listens: set storage.postgres, the same database, beside it')]
}
