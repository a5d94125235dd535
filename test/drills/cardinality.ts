// Requests with random paths, methods, hosts, tokens and keys create no new time series in the metrics.
import { randomUUID } from 'node:crypto'
import type { Pool } from 'pg'
import { sha256Hex } from '../../src/identity/token-hash.ts'
import { scrape } from '../support/scrape.ts'
import { noRateLimits } from './accounts.ts'
import { openStage } from './replicas.ts'
import { serviceAt, startUpstream } from './stage.ts'
import { type Answers, createStrangers } from './strangers.ts'
import { createUsers } from './users.ts'
import type { Watch } from './watch.ts'

const requests = 100_000
/**
 * The number of users in each of the four groups: users with uses left, users without uses left, deactivated users, and
 * users with an API key.
 */
const each = 1_000
/** The daily limit of uses. The limit is so high that the requests of the drill never reach it. */
const daily = 1_000_000

export async function cardinality({ say, expect }: Watch): Promise<void> {
  const upstream = await startUpstream()
  const stage = await openStage()
  try {
    await stage.migrate()
    const { keys: signing, tokens } = await createUsers(stage, 4 * each, 'free')
    const keys = await changeUsers(stage.database)
    const gateway = await stage.start({ settings: settings(signing), routing: routing(upstream.port) })
    const address = `http://127.0.0.1:${gateway.admin}`
    const strangers = createStrangers(gateway.port, {
      tokens: tokens.slice(0, each),
      spent: tokens.slice(each, 2 * each),
      inactive: tokens.slice(2 * each, 3 * each),
      keys,
    })
    const kinds = total(await strangers.everyKind())
    const before = await scrape(address)
    say(`${kinds} requests, one of each kind, create ${before.series.size} time series`)
    const answers = await strangers.random(requests)
    strangers.stop()
    const after = await scrape(address)
    say(`${total(answers)} random requests by result: ${byClass(answers)}`)
    const grown = [...after.series.keys()].filter(id => !before.series.has(id))
    expect(
      `${requests} random requests create no time series`,
      after.series.size === before.series.size && grown.length === 0,
      `${before.series.size} before, ${after.series.size} after${grown.length > 0 ? `: ${grown.slice(0, 5).join(' ')}` : ''}`,
    )
    const counted = after.sum('http_requests_total') - before.sum('http_requests_total')
    expect(
      'the metrics count these requests',
      counted > 0.9 * requests,
      `${counted}; the others are not valid HTTP`,
    )
  } finally {
    await stage.stop()
    await upstream.stop()
  }
}

/** Divides new users into the four groups. @returns the API keys of the last group */
async function changeUsers(database: Pool): Promise<string[]> {
  const keys = Array.from({ length: each }, () => `peage_${randomUUID()}`)
  await database.query(
    `update users set daily_usage = $1, last_usage_date = (now() at time zone 'utc')::date where id between $2 and $3`,
    [daily, each + 1, 2 * each],
  )
  await database.query("update users set plan = 'pro' where id > $1", [3 * each])
  await database.query('update users set is_active = 0 where id between $1 and $2', [2 * each + 1, 3 * each])
  await database.query(
    'insert into api_tokens (user_id, token_hash) select $1 + at, hash from unnest($2::text[]) with ordinality as one (hash, at)',
    [3 * each, keys.map(key => sha256Hex(key))],
  )
  return keys
}

/** Settings without rate limits. With limits, the status codes would depend on the speed of the machine. */
function settings(signing: string): string {
  return `limits: { free_daily: ${daily} }
auth: { keys: [${JSON.stringify(signing)}], ${noRateLimits} }`
}

function routing(port: number): string {
  return `${serviceAt(port)}
routes:
  - { path: /public/*, upstream: service, auth: none }
  - { path: /guarded/*, upstream: service, auth: optional }
  - { path: /paid/:id/reviews, upstream: service, plans: [premium, pro] }
  - { path: /daily/*, upstream: service, free_daily: true }
  - { path: /read/:id, upstream: service, methods: [GET] }
  - { path: /hosted/*, upstream: service, hosts: [drill.example] }`
}

function byClass(answers: Answers): string {
  const classes = new Map<string, number>()
  for (const [status, count] of answers) {
    const name = typeof status === 'number' ? `${Math.floor(status / 100)}xx` : status
    classes.set(name, (classes.get(name) ?? 0) + count)
  }
  return [...classes]
    .toSorted()
    .map(([name, count]) => `${name} ${count}`)
    .join(', ')
}

function total(answers: Answers): number {
  return [...answers.values()].reduce((sum, count) => sum + count, 0)
}
