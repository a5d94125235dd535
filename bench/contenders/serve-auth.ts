// The auth service of the peers. Its arguments are [--remember SECONDS] ISSUER DATABASE. It verifies the token with
// jose and the JWKS of the issuer. With a prepared statement, it looks up the user, who must be active.
import { parseArgs } from 'node:util'
import fastify from 'fastify'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import { LRUCache } from 'lru-cache'
import pg from 'pg'

interface User {
  readonly id: string
  readonly plan: string
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { remember: { type: 'string', default: '0' } },
})
const [issuer = '', database = ''] = positionals
const rememberMs = Number(values.remember) * 1_000

const keys = createRemoteJWKSet(new URL('/.well-known/jwks.json', issuer))
const rules = { issuer: 'peage', audience: 'peage', typ: 'at+jwt', algorithms: ['ES256'] }
const pool = new pg.Pool({ connectionString: database, max: 10 })
pool.on('error', () => {})

/** The cached users by `Authorization` header. */
const remembered = new LRUCache<string, User>({ max: 100_000 })

const app = fastify()
app.get('/', async (request, reply) => {
  const authorization = request.headers.authorization ?? ''
  const user = remembered.get(authorization) ?? (await findUser(authorization))
  if (user === undefined) return reply.code(401).send()
  return reply.headers({ 'x-user-id': user.id, 'x-user-plan': user.plan }).send()
})

async function findUser(authorization: string): Promise<User | undefined> {
  if (!authorization.startsWith('Bearer ')) return undefined
  const verified = await jwtVerify(authorization.slice(7), keys, rules).catch(() => undefined)
  if (verified === undefined) return undefined
  const { rows } = await pool.query<User>({
    name: 'active-user',
    text: 'select id, plan from users where id = $1 and is_active = 1',
    values: [verified.payload.sub],
  })
  const [user] = rows
  // An entry must not stay in the cache for longer than the token is valid.
  const ttl = Math.min(rememberMs, (verified.payload.exp ?? 0) * 1_000 - Date.now())
  if (user !== undefined && ttl > 0) remembered.set(authorization, user, { ttl })
  return user
}

process.stdout.write(`${await app.listen({ port: 0, host: '127.0.0.1' })}\n`)
process.once('SIGTERM', () => process.exit())
