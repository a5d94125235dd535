// The auth service that proxies ask: jose verification by the JWKS, one prepared look-up of the active user; nothing slower.
import fastify from 'fastify'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import pg from 'pg'

const [, , issuer = '', database = ''] = process.argv
const keys = createRemoteJWKSet(new URL('/.well-known/jwks.json', issuer))
const rules = { issuer: 'peage', audience: 'peage', typ: 'at+jwt', algorithms: ['ES256'] }
const pool = new pg.Pool({ connectionString: database, max: 10 })
pool.on('error', () => {})

const app = fastify()
app.get('/', async (request, reply) => {
  const user = await findUser(request.headers.authorization ?? '')
  if (user === undefined) return reply.code(401).send()
  return reply.headers({ 'x-user-id': user.id, 'x-user-plan': user.plan }).send()
})

/** @param {string} authorization */
async function findUser(authorization) {
  if (!authorization.startsWith('Bearer ')) return undefined
  const verified = await jwtVerify(authorization.slice(7), keys, rules).catch(() => undefined)
  if (verified === undefined) return undefined
  const { rows } = await pool.query({
    name: 'active-user',
    text: 'select id, plan from users where id = $1 and is_active = 1',
    values: [verified.payload.sub],
  })
  return rows[0]
}

process.stdout.write(`${await app.listen({ port: 0, host: '127.0.0.1' })}\n`)
process.once('SIGTERM', () => process.exit())
