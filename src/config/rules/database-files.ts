// Whether the files can be read that a `postgres://` address names for TLS.

import type { Fault } from '../diagnostics.ts'
import { pointTo } from '../pointer.ts'
import type { Shape } from '../validate.ts'
import { reasonOf } from '../yaml/interpolate.ts'
import { maxFileBytes, type ReadFile } from '../yaml/read-file.ts'
import { faultAt, type Sheet } from '../yaml/yaml-source.ts'

/** The driver reads them when it connects. @param readFile throws where it cannot */
export function checkDatabaseFiles(sheet: Sheet, shape: Shape, readFile: ReadFile): Fault[] {
  const { storage } = sheet.value as { storage?: Record<string, unknown> | null }
  return (['postgres', 'postgres_listen'] as const).flatMap(key => {
    const pointer = pointTo('/storage', key)
    const address = storage?.[key]
    if (typeof address !== 'string' || address === '' || !shape.sound(pointer)) return []
    const { searchParams } = new URL(address)
    return ['sslrootcert', 'sslcert', 'sslkey'].flatMap(name => {
      const file = searchParams.get(name)
      if (!file) return []
      try {
        readFile(file, maxFileBytes)
        return []
      } catch (error) {
        const message = `has the ${name} ${JSON.stringify(file)}, which cannot be read (${reasonOf(error)})`
        return [faultAt(sheet, pointer, message)]
      }
    })
  })
}
