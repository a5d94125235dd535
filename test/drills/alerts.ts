// Sends alerts in the same way as a service behind the gateway. Also creates the users who receive the alerts.
import { randomBytes } from 'node:crypto'
import { Agent, request } from 'node:http'
import type { Pool } from 'pg'
import { adminToken } from './replicas.ts'

const agent = new Agent({ keepAlive: true })

export interface Alert {
  readonly type: string
  readonly data: unknown
  /** The ID of the user who receives the alert. Without an ID, every user with a webhook receives the alert. */
  readonly user_id?: number | undefined
}

export interface EmitAnswer {
  readonly status: number
  readonly deliveries: number
  /** The milliseconds from the request to the response. */
  readonly took: number
  /** The time of the response, in nanoseconds of the system's monotonic clock. */
  readonly at: bigint
}

/** @param port the port of a replica's admin listener */
export function emit(port: number, alert: Alert): Promise<EmitAnswer> {
  return new Promise((resolve, reject) => {
    const begun = process.hrtime.bigint()
    const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
    const place = { host: '127.0.0.1', port, path: '/admin/v1/alerts', method: 'POST' }
    const sent = request({ ...place, headers, agent })
    sent.on('error', reject).on('response', async answer => {
      try {
        let text = ''
        for await (const chunk of answer) text += chunk
        const at = process.hrtime.bigint()
        const { deliveries = 0 } = JSON.parse(text) as { deliveries?: number }
        resolve({ status: answer.statusCode ?? 0, deliveries, took: Number(at - begun) / 1e6, at })
      } catch (error) {
        reject(error)
      }
    })
    sent.end(JSON.stringify(alert))
  })
}

export function newSecret(): string {
  return `whsec_${randomBytes(24).toString('base64')}`
}

export interface Webhook {
  readonly url: string
  readonly receiver: string
  readonly secret: string
}

/**
 * Creates one user with the plan `pro` for each webhook. Uses a single SQL statement.
 * @returns the user IDs in the order of the webhooks
 */
export async function createUsers(database: Pool, webhooks: readonly Webhook[]): Promise<number[]> {
  const { rows } = await database.query<{ id: string }>(
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
      webhooks.map(({ url }) => url),
      webhooks.map(({ receiver }) => receiver),
      webhooks.map(({ secret }) => secret),
    ],
  )
  return rows.map(({ id }) => Number(id))
}

/** @returns a function that returns a quantile of the values; for example, the share 0.5 gives the median */
export function quantiles(values: readonly number[]): (share: number) => number {
  const sorted = values.toSorted((a, b) => a - b)
  return share => sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN
}
