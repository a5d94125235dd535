// Wraps the stores in tracing spans; without tracing the stores are used directly.
import type { StoreSpans } from '../observability/tracing/tracing.ts'
import { type Database, type Queryable, textOf } from './database.ts'
import type { ScriptRunner } from './redis/redis-scripts.ts'

/** One span per statement; none for begin, commit and rollback. */
export function tracedDatabase<D extends Database>(database: D, spans: StoreSpans): D {
  const traced = (queryable: Queryable): Queryable => ({
    query: (sql, values) => spans.statement(textOf(sql), () => queryable.query(sql, values)),
  })
  return {
    ...database,
    ...traced(database),
    transaction: (work, options) => database.transaction(tx => work(traced(tx)), options),
  }
}

export function tracedScriptRunner(scriptRunner: ScriptRunner, spans: StoreSpans): ScriptRunner {
  return {
    ...scriptRunner,
    run: (script, key, args) => spans.script(script.name, () => scriptRunner.run(script, key, args)),
  }
}
