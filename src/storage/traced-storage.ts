// Stores around which spans are put: where there are none, the stores stand alone.
import type { StoreSpans } from '../observability/tracing/tracing.ts'
import type { Database, Queryable } from './database.ts'
import type { ScriptRunner } from './redis/redis-scripts.ts'

/** Each statement has one; what begins and ends a transaction has none. */
export function tracedDatabase<D extends Database>(database: D, spans: StoreSpans): D {
  const traced = (queryable: Queryable): Queryable => ({
    query: (sql, values) =>
      spans.statement(typeof sql === 'string' ? sql : sql.text, () => queryable.query(sql, values)),
  })
  return {
    ...database,
    ...traced(database),
    transaction: (work, options) => database.transaction(tx => work(traced(tx)), options),
  }
}

export function tracedScriptRunner(scriptRunner: ScriptRunner, spans: StoreSpans): ScriptRunner {
  return {
    get isUp() {
      return scriptRunner.isUp
    },
    run: (script, key, args) => spans.script(script.name, () => scriptRunner.run(script, key, args)),
    ping: scriptRunner.ping,
    whenUp: scriptRunner.whenUp,
    close: scriptRunner.close,
  }
}
