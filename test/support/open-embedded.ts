// Opens embedded databases as the gateway does: V8's optimizing compiler would take twice the CPU time.
import { withoutOptimizingWasm } from '../../src/http/node-internals.ts'
import {
  type EmbeddedDatabase,
  type EmbeddedOptions,
  openEmbedded as open,
} from '../../src/storage/pglite/pglite.ts'

export function openEmbedded(options?: EmbeddedOptions): Promise<EmbeddedDatabase> {
  return withoutOptimizingWasm(() => open(options))
}
