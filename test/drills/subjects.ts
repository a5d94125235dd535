// The subjects of the drill `revocation`. Each subject has a user and one kind of revocation. It also has the status
// codes that the user's requests must get before and after the revocation.
import { createHash } from 'node:crypto'
import { Agent, type OutgoingHttpHeaders, request } from 'node:http'
import type { Pool } from 'pg'
import { password } from '../support/client.ts'

const agent = new Agent({ keepAlive: true, maxSockets: 512 })

export interface Subject {
  readonly name: string
  readonly headers: Readonly<Record<string, string>>
  take(): Promise<unknown>
  giveBack(): Promise<unknown>
  /** The status codes that the user's requests must get before and after the revocation. */
  readonly before: number
  readonly after: number
}

/** @param port the port of a gateway */
export async function createSubjects(port: number, database: Pool): Promise<Subject[]> {
  const deactivated = await newPro(port, database, 'deactivated')
  const changed = await newPro(port, database, 'changed')
  const keyOwner = await newPro(port, database, 'key-owner')
  const key = `peage_drill_${keyOwner.id}`
  const hash = createHash('sha256').update(key).digest('hex')
  await database.query('insert into api_tokens (user_id, token_hash) values ($1, $2)', [keyOwner.id, hash])
  const setUser = (column: string, value: string | number, { id }: Pro) =>
    database.query(`update users set ${column} = $1 where id = $2`, [value, id])
  const setRevoked = (value: number) =>
    database.query('update api_tokens set revoked = $1 where user_id = $2', [value, keyOwner.id])
  return [
    {
      name: 'deactivation',
      headers: deactivated.headers,
      take: () => setUser('is_active', 0, deactivated),
      giveBack: () => setUser('is_active', 1, deactivated),
      before: 200,
      after: 401,
    },
    {
      name: 'plan change',
      headers: changed.headers,
      take: () => setUser('plan', 'free', changed),
      giveBack: () => setUser('plan', 'pro', changed),
      before: 200,
      after: 403,
    },
    {
      name: 'key revocation',
      headers: { 'x-api-key': key },
      take: () => setRevoked(1),
      giveBack: () => setRevoked(0),
      before: 200,
      after: 401,
    },
  ]
}

export interface Pro {
  readonly id: number
  /** The request headers with the user's access token. */
  readonly headers: { readonly authorization: string }
}

/** Registers a user, changes the plan to `pro`, and logs in as this user. */
export async function newPro(port: number, database: Pool, name: string): Promise<Pro> {
  const account = { email: `${name}@drill.test`, password }
  const { body: registered } = await post(port, 'register', account)
  const id = Number(registered.user_id)
  await database.query("update users set plan = 'pro' where id = $1", [id])
  const { body: pair } = await post(port, 'login', account)
  return { id, headers: { authorization: `Bearer ${pair.access_token}` } }
}

export interface JsonAnswer {
  /** The status code; 0 if the connection failed. */
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

/** @param endpoint the path after /api/v1/auth/, for example `login` */
export async function post(port: number, endpoint: string, body: object): Promise<JsonAnswer> {
  const { status, text } = await send(port, 'POST', `/api/v1/auth/${endpoint}`, {}, JSON.stringify(body))
  return { status, body: text === '' ? {} : JSON.parse(text) }
}

export interface Answer {
  /** The status code; 0 if the connection failed. */
  readonly status: number
  readonly text: string
}

export function ask(port: number, headers: Readonly<Record<string, string>>): Promise<Answer> {
  return send(port, 'GET', '/public/small', headers)
}

export function send(
  port: number,
  method: string,
  path: string,
  headers: Readonly<OutgoingHttpHeaders>,
  body?: string,
): Promise<Answer> {
  return new Promise(resolve => {
    const broken = () => resolve({ status: 0, text: '' })
    const sent = request({ host: '127.0.0.1', port, method, path, headers, agent })
    sent.on('error', broken)
    sent.on('response', answer => {
      let text = ''
      answer.setEncoding('utf8').on('data', chunk => {
        text += chunk
      })
      answer.on('error', broken).on('end', () => resolve({ status: answer.statusCode ?? 0, text }))
    })
    sent.end(body)
  })
}
