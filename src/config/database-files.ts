// Whether the files can be read that a `postgres://` address names for TLS.
import { faultAt, type Sheet } from './document.ts'
import { reasonOf } from './interpolate.ts'
import { pointTo } from './pointer.ts'
import type { Fault } from './problem.ts'
import { maxFileBytes, type ReadFile } from './read-file.ts'
import type { Shape } from './shape.ts'

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
