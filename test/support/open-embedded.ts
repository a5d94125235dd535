// Opens embedded databases like the gateway, without V8's optimizing compiler, which takes twice the CPU time.
import { withoutOptimizingWasm } from '../../src/http/node-internals.ts'
import {
  type EmbeddedDatabase,
  type EmbeddedOptions,
  openEmbedded as open,
} from '../../src/storage/pglite/pglite.ts'

export function openEmbedded(options?: EmbeddedOptions): Promise<EmbeddedDatabase> {
  return withoutOptimizingWasm(() => open(options))
}
