// Opens embedded databases like the gateway, but without V8's optimizing compiler. With this compiler, a start takes
// twice the CPU time.
import { withoutOptimizingWasm } from '../../src/http/node-internals.ts'
import {
  type EmbeddedDatabase,
  type EmbeddedOptions,
  openEmbedded as open,
} from '../../src/storage/pglite/pglite.ts'

export function openEmbedded(options?: EmbeddedOptions): Promise<EmbeddedDatabase> {
  return withoutOptimizingWasm(() => open(options))
}
