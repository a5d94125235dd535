// A Postgres and a Redis that nobody else uses, so that every byte and every microsecond of theirs is what was measured.
import { openPostgres } from '../../build/storage/postgres/postgres.js'
import { cpuSeconds, processTree } from '../costs.mjs'
import { findPostgres, findProgram } from '../programs.mjs'
import { startPostgres, startRedis } from '../services.mjs'

/**
 * With the gateway's tables. No checkpoint and no vacuum but those that are asked for.
 * @param {readonly string[]} [settings]
 */
export async function startOwnPostgres(settings = []) {
  const bin = findPostgres()
  if (bin === undefined) throw new Error('this needs the programs postgres and initdb on the machine')
  const quiet = ['autovacuum=off', 'checkpoint_timeout=1h', 'max_wal_size=16GB', 'max_connections=500']
  const { url, pid } = await startPostgres(bin, [...quiet, ...settings])
  const database = openPostgres({ url, maxConnections: 10, onError: () => {} })
  await database.migrate()
  return { url, database, cpu: () => cpuSeconds(processTree(pid)) }
}

export async function startOwnRedis() {
  const program = findProgram('redis-server')
  if (program === undefined) throw new Error('this needs the program redis-server on the machine')
  const { url, pid } = await startRedis(program)
  return { url, cpu: () => cpuSeconds(processTree(pid)) }
}

/**
 * Does something for each, so many at a time.
 * @template T
 * @param {readonly T[]} all
 * @param {number} atOnce
 * @param {(one: T) => Promise<unknown>} work
 */
export async function forEach(all, atOnce, work) {
  let next = 0
  const worker = async () => {
    while (next < all.length) {
      next += 1
      await work(all[next - 1])
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
}

/** Whole, or with two figures where it is small. @param {number} number */
export function round(number) {
  return Number(number >= 10 ? number.toFixed(0) : number.toPrecision(2))
}
