// Stores around which spans are put: where there are none, the stores stand alone.
import type { StoreSpans } from '../observability/tracing/tracing.ts'
import type { Database, Queryable } from './database.ts'
import type { KeyValue } from './redis/redis-scripts.ts'

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

export function tracedKeyValue(keyValue: KeyValue, spans: StoreSpans): KeyValue {
  return {
    get isUp() {
      return keyValue.isUp
    },
    run: (script, key, args) => spans.script(script.name, () => keyValue.run(script, key, args)),
    ping: keyValue.ping,
    whenUp: keyValue.whenUp,
    close: keyValue.close,
  }
}
