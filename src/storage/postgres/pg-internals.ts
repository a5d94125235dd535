// Contains every use of a private part of pg. docs/dev/private-parts.md lists the reasons and tests.
import { Client, Pool, type PoolConfig, type QueryConfig } from 'pg'

/**
 * Limits the time of one statement. pg supports the option `query_timeout` for a single statement, but documents this
 * option only for a pool.
 *
 * Remove this when pg documents `query_timeout` of a statement. https://github.com/brianc/node-postgres/pull/2655
 */
export function withTimeout<Statement extends QueryConfig>(
  statement: Statement,
  timeoutMs: number,
): Statement {
  return Object.assign(statement, { query_timeout: timeoutMs })
}

const MAX_OPENING = 2

/**
 * Creates a pool that opens at most two connections at once. The Postgres server starts a process for each connection.
 * After a restart of the server, many connections are requested at once, and the server cannot start all processes in
 * time. Every attempt would time out, be repeated, and delay the other attempts again.
 *
 * While two connections are opening, the pool sets `options.max` to zero. pg reads `options.max` before it opens a
 * connection, so pg opens no further connection.
 *
 * Remove this when pg limits the connections that it opens at once. https://github.com/brianc/node-postgres/issues/3081
 * @param config `max` is the maximum number of connections
 */
export function createPool(config: PoolConfig & { max: number }): Pool {
  let opening = 0

  class CountedClient extends Client {
    override connect(): Promise<Client>
    override connect(callback: (error: Error) => void): void
    override connect(callback?: (error: Error) => void): Promise<Client> | undefined {
      if (callback === undefined) return super.connect()
      opening += 1
      super.connect((error: Error | null) => {
        opening -= 1
        callback(error as Error)
      })
      return undefined
    }
  }

  const pool = new Pool({ ...config, Client: CountedClient })
  // While `max` is zero, the pool counts as full, so each request waits in the pool's queue. A released connection goes
  // to the first request in the queue.
  Object.defineProperty(pool.options, 'max', { get: () => (opening < MAX_OPENING ? config.max : 0) })
  pool.on('connect', openNext)

  /**
   * If requests wait in the queue, opens one more connection. When this connection is released, the first waiting
   * request gets it.
   */
  function openNext(): void {
    if (pool.waitingCount === 0 || pool.totalCount >= config.max) return
    pool.connect().then(
      client => client.release(),
      // An error of this connection is ignored here, because each waiting request fails with its own timeout.
      () => {},
    )
  }

  return pool
}
