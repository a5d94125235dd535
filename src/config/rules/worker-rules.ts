// Checks that several processes can share the configured stores (CONTRACT §2, `server.workers`).

import type { Diagnostic } from '../diagnostics.ts'
import type { Validation } from '../validate.ts'
import { diagnosticAt, type YamlSource } from '../yaml/yaml-source.ts'

/** `auto` counts as several even on one core: whether a file is valid must not depend on the machine. */
export function checkWorkers(yaml: YamlSource, validation: Validation): Diagnostic[] {
  const { server, storage } = yaml.value as {
    server?: Partial<WrittenServer>
    storage?: Partial<WrittenStorage>
  }
  const workers = server?.workers
  if (workers === undefined || workers === 1 || !validation.isValid('/server/workers')) return []
  const missing = (['postgres', 'redis'] as const).filter(
    name => storage?.[name] === '' && validation.isValid(`/storage/${name}`),
  )
  if (missing.length === 0) return []
  const why = missing.map(name => reasons[name]).join(', and ')
  const remedy = missing.map(name => `storage.${name}`).join(' and ')
  return [diagnosticAt(yaml, '/server/workers', `cannot be more than 1: ${why}; set ${remedy}`)]
}

interface WrittenServer {
  workers: number | 'auto'
}

interface WrittenStorage {
  postgres: string
  redis: unknown
}

const reasons = {
  postgres: 'the embedded database serves one process',
  redis: 'without Redis each process would count rate limits for itself',
}
