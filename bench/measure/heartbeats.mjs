// What replicas that only listen cost Postgres: every notification wakes every listening backend of the database.
import { setTimeout as sleep } from 'node:timers/promises'
import { createChangeFeed } from '../../build/storage/change-feed.js'
import { postgresListener } from '../../build/storage/postgres/postgres-listener.js'
import { createUserStore } from '../../build/users/user-store.js'
import { forEach, round, startOwnPostgres } from './own-stores.mjs'

const seconds = 3
const users = 1_000

/** @type {import('./main.mjs').Part} */
export async function heartbeats({ say, table }) {
  const postgres = await startOwnPostgres()
  const { database, cpu } = postgres
  const accounts = createUserStore(database)
  for (let id = 1; id <= users; id += 1) await accounts.create(`user${id}@example.com`, '-')
  const idle = []
  for (const processes of [10, 25, 50, 100, 200]) {
    const feeds = await listen(postgres, processes)
    const before = cpu()
    await sleep(seconds * 1_000)
    const cores = (cpu() - before) / seconds
    const isHeard = feeds.every(feed => feed.isFresh())
    await Promise.all(feeds.map(feed => feed.close()))
    const wakeUps = 2 * processes * processes
    idle.push([
      processes,
      2 * processes,
      wakeUps,
      round(cores),
      round((cores / wakeUps) * 1e6),
      isHeard ? 'yes' : 'no',
    ])
  }
  table(['processes', 'heartbeats/s', 'wake-ups/s', 'cores of Postgres', 'µs a wake-up', 'all heard'], idle)
  say('')
  const busy = []
  for (const processes of [1, 10, 50]) {
    const feeds = await listen(postgres, processes)
    let heard = 0
    feeds[0].subscribe(
      () => {
        heard += 1
      },
      () => {},
    )
    const changes = Array.from({ length: 2 * users }, (_, at) => at)
    const [before, begun] = [cpu(), performance.now()]
    await forEach(changes, 10, at =>
      database.query('update users set is_active = 1 - is_active where id = $1', [(at % users) + 1]),
    )
    const took = (performance.now() - begun) / 1000
    await feeds[0].catchUp()
    const cores = (cpu() - before) / took
    await Promise.all(feeds.map(feed => feed.close()))
    busy.push([
      processes,
      round(changes.length / took),
      round(cores),
      round((cores * took * 1e6) / changes.length),
      heard,
    ])
  }
  table(
    ['processes', 'changes/s, one after the other', 'cores of Postgres', 'µs a change', 'heard of 2,000'],
    busy,
  )
  await database.close()
}

/** As many gateways as far as Postgres can tell, all heard of. */
async function listen({ url, database }, processes) {
  const feeds = Array.from({ length: processes }, () =>
    createChangeFeed({
      listen: postgresListener(url),
      database,
      now: () => performance.now(),
      onState: () => {},
    }),
  )
  for (let waited = 0; !feeds.every(feed => feed.isFresh()); waited += 50) {
    if (waited > 30_000) throw new Error(`not all of ${processes} hear within 30 s`)
    await sleep(50)
  }
  await sleep(1_000)
  return feeds
}
