// A pool that opens few connections at once. A server starts a process for each, and one that has just come back is late with
// all of them: every one would time out, be opened anew, and take the others' time again.
import { Client, Pool, type PoolConfig } from 'pg'

const MAX_OPENING = 2

/** @param config with the most connections that the pool may have */
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
  // What is asked of a full pool waits in its line, which released connections serve too.
  Object.defineProperty(pool.options, 'max', { get: () => (opening < MAX_OPENING ? config.max : 0) })
  pool.on('connect', openNext)

  /** For those in line, where nobody else asks for a connection: releasing it serves them. */
  function openNext(): void {
    if (pool.waitingCount === 0 || pool.totalCount >= config.max) return
    pool.connect().then(
      client => client.release(),
      // Whoever is in line is told of it by the attempt of their own.
      () => {},
    )
  }

  return pool
}
