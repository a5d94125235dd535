// Checks that the two listeners have different ports. If there are several workers, checks that they can share stores.
import type { Diagnostic } from '../diagnostics.ts'
import { type ListenAddress, parseListen } from '../formats/addresses.ts'
import type { Validation } from '../validate.ts'
import { diagnosticAt, type YamlSource } from '../yaml/yaml-source.ts'

/**
 * `auto` counts as several processes, even on a machine with one core. Otherwise, a file could be valid on only some
 * machines.
 */
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
  const why = missing.map(name => reasons[name]).join(' and ')
  const remedy = missing.map(name => `storage.${name}`).join(' and ')
  return [diagnosticAt(yaml, '/server/workers', `cannot be more than 1, because ${why}; set ${remedy}`)]
}

interface WrittenServer {
  workers: number | 'auto'
}

interface WrittenStorage {
  postgres: string
  redis: unknown
}

const reasons = {
  postgres: 'the embedded database serves only one process',
  redis: 'rate limits need Redis to count across processes',
}

/** A listener on every address (0.0.0.0 or ::) also occupies its port on each single address. */
export function checkListeners(yaml: YamlSource, validation: Validation): Diagnostic[] {
  const { clients, operators } = readListeners(yaml, validation)
  if (clients === undefined || operators === undefined || clients.port === 0) return []
  const isTaken =
    clients.port === operators.port &&
    (clients.host === operators.host || [clients.host, operators.host].some(host => everyAddress.has(host)))
  if (!isTaken) return []
  // The two `listen` keys have different default ports. The ports are equal here, so at least one of the keys is in the
  // file.
  const [pointer, other] = yaml.locations.has('/admin/listen')
    ? (['/admin/listen', 'server.listen'] as const)
    : (['/server/listen', 'admin.listen'] as const)
  return [diagnosticAt(yaml, pointer, `uses the same port as ${other}; choose another port`)]
}

/** A listener with one of these addresses listens on every address of the machine. */
export const everyAddress: ReadonlySet<string> = new Set(['0.0.0.0', '::'])

export function readListeners(
  yaml: YamlSource,
  validation: Validation,
): Partial<Record<'clients' | 'operators', ListenAddress | undefined>> {
  const { server, admin } = yaml.value as Partial<Record<'server' | 'admin', { listen?: unknown } | null>>
  return {
    clients: listenAt('/server/listen', server?.listen, validation),
    operators: listenAt('/admin/listen', admin?.listen, validation),
  }
}

function listenAt(pointer: string, value: unknown, validation: Validation): ListenAddress | undefined {
  return typeof value === 'string' && validation.isValid(pointer) ? parseListen(value) : undefined
}
