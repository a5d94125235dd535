// Checks that both listeners can be open at the same time.

import type { Diagnostic } from '../diagnostics.ts'
import { type ListenAddress, parseListen } from '../formats/addresses.ts'
import type { Validation } from '../validate.ts'
import { diagnosticAt, type YamlSource } from '../yaml/yaml-source.ts'

/** A listener on every address (0.0.0.0, ::) takes its port on each single address too. */
export function checkListeners(yaml: YamlSource, validation: Validation): Diagnostic[] {
  const { server, admin } = yaml.value as Partial<Record<'server' | 'admin', { listen?: unknown } | null>>
  const clients = listenAt('/server/listen', server?.listen, validation)
  const operators = listenAt('/admin/listen', admin?.listen, validation)
  if (clients === undefined || operators === undefined || clients.port === 0) return []
  const isTaken =
    clients.port === operators.port &&
    (clients.host === operators.host || [clients.host, operators.host].some(host => everyAddress.has(host)))
  if (!isTaken) return []
  // At least one of them is in the file, because the defaults differ.
  const [pointer, other] = yaml.locations.has('/admin/listen')
    ? (['/admin/listen', 'server.listen'] as const)
    : (['/server/listen', 'admin.listen'] as const)
  return [diagnosticAt(yaml, pointer, `has the port of ${other}; give it another`)]
}

const everyAddress = new Set(['0.0.0.0', '::'])

function listenAt(pointer: string, value: unknown, validation: Validation): ListenAddress | undefined {
  return typeof value === 'string' && validation.isValid(pointer) ? parseListen(value) : undefined
}
