// Whether several processes can share what is configured to be kept (CONTRACT §2, `server.workers`).

import type { Fault } from '../diagnostics.ts'
import type { Shape } from '../validate.ts'
import { faultAt, type Sheet } from '../yaml/yaml-source.ts'

/** `auto` too where there is one core: what a file says must not depend on the machine. */
export function checkWorkers(sheet: Sheet, shape: Shape): Fault[] {
  const { server, storage } = sheet.value as { server?: Partial<Written>; storage?: Partial<Stores> }
  const workers = server?.workers
  if (workers === undefined || workers === 1 || !shape.sound('/server/workers')) return []
  const missing = (['postgres', 'redis'] as const).filter(
    name => storage?.[name] === '' && shape.sound(`/storage/${name}`),
  )
  if (missing.length === 0) return []
  const why = missing.map(name => reasons[name]).join(', and ')
  const right = missing.map(name => `storage.${name}`).join(' and ')
  return [faultAt(sheet, '/server/workers', `cannot be more than 1: ${why}; set ${right}`)]
}

interface Written {
  workers: number | 'auto'
}

interface Stores {
  postgres: string
  redis: unknown
}

const reasons = {
  postgres: 'the embedded database serves one process',
  redis: 'without Redis each process would count rate limits for itself',
}
