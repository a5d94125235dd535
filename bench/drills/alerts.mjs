// Alerts as a service behind the gateway emits them, and the users that they are for.
import { randomBytes } from 'node:crypto'
import { Agent, request } from 'node:http'
import { adminToken } from './replicas.mjs'

const agent = new Agent({ keepAlive: true })

/**
 * @param {number} port of a replica's admin listener
 * @param {{ type: string, data: unknown, user_id?: number }} alert
 * @returns {Promise<{ status: number, deliveries: number, took: number, at: bigint }>} `took` in milliseconds; `at`
 *   when it was answered, on the clock that all processes of a machine share
 */
export function emit(port, alert) {
  return new Promise((resolve, reject) => {
    const begun = process.hrtime.bigint()
    const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
    const sent = request({
      host: '127.0.0.1',
      port,
      path: '/admin/v1/alerts',
      method: 'POST',
      headers,
      agent,
    })
    sent.on('error', reject).on('response', async answer => {
      try {
        let text = ''
        for await (const chunk of answer) text += chunk
        const at = process.hrtime.bigint()
        const { deliveries = 0 } = JSON.parse(text)
        resolve({ status: answer.statusCode, deliveries, took: Number(at - begun) / 1e6, at })
      } catch (error) {
        reject(error)
      }
    })
    sent.end(JSON.stringify(alert))
  })
}

export function newSecret() {
  return `whsec_${randomBytes(24).toString('base64')}`
}

/**
 * Pro users, each with a webhook, in the place of as many registrations.
 * @param {import('pg').Pool} database
 * @param {{ url: string, receiver: string, secret: string }[]} webhooks
 * @returns {Promise<number[]>} the users' ids, in the order of their webhooks
 */
export async function createUsers(database, webhooks) {
  const { rows } = await database.query(
    `with made as (
       insert into users (email, password_hash, plan)
       select $1 || n || '@drill.test', 'none', 'pro' from generate_series(1, $2) n order by n returning id, email
     ), owned as (
       insert into webhooks (user_id, url, receiver, secret)
       select made.id, w.url, w.receiver, w.secret
         from unnest($3::text[], $4::text[], $5::text[]) with ordinality as w (url, receiver, secret, n)
              join made on made.email = $1 || w.n || '@drill.test'
     )
     select id from made order by id`,
    [
      `${randomBytes(4).toString('hex')}-`,
      webhooks.length,
      ...['url', 'receiver', 'secret'].map(field => webhooks.map(webhook => webhook[field])),
    ],
  )
  return rows.map(({ id }) => Number(id))
}

/** @param {number[]} values @returns {(share: number) => number} 0.5 is the median */
export function quantiles(values) {
  const sorted = values.toSorted((a, b) => a - b)
  return share => sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN
}
