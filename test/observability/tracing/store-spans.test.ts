// In a span, the summary of an SQL statement contains only the operations and tables of the statement.
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { summaryOf } from '../../../src/observability/tracing/store-spans.ts'

it.each([
  ['select id from users where id = $1', 'SELECT users'],
  ['select 1', 'SELECT'],
  ['\nupdate users\nset daily_usage = 1', 'UPDATE users'],
  ['select id from users where id = $1 for no key update', 'SELECT users'],
  ['insert into users (email) values ($1) on conflict (email) do update set x = 1', 'INSERT users'],
  ['delete from t where id in (select id from t for update skip locked)', 'DELETE t'],
  [
    'with a as (select id from users), b as (insert into tokens select id from a) select id from a',
    'INSERT tokens',
  ],
  [
    'with a as (update x set y = 1 returning z), b as (insert into x select z from a) select',
    'UPDATE x INSERT x',
  ],
  ['with a as (select id from users) select id from a', 'SELECT users'],
  ['lock table signing_keys in share row exclusive mode', 'LOCK signing_keys'],
])('the summary of %j is %s', (text, summary) => {
  expect(summaryOf(text)).toBe(summary)
})

it('the summary of every SQL statement in src/ contains no literal', () => {
  const src = fileURLToPath(new URL('../../../src', import.meta.url))
  const stores = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter(name =>
    /-store\.ts$/.test(name),
  )
  const texts = stores.flatMap(name =>
    [
      ...readFileSync(`${src}/${name}`, 'utf8').matchAll(
        /['`]\s*((?:select|insert|update|delete|with)\s[^'`]+)/g,
      ),
    ].map(([, text = '']) => text),
  )
  expect(texts.length).toBeGreaterThan(20)
  for (const text of texts) expect(summaryOf(text)).toMatch(/^(?:[A-Z]+(?: [a-z_]+)?)(?: [A-Z]+ [a-z_]+)*$/)
})
