// Bare `@fastify/http-proxy`, which passes WebSockets on, and keeps idle connections for as long as it is measured.
import proxy from '@fastify/http-proxy'
import fastify from 'fastify'

const app = fastify({ keepAliveTimeout: 600_000 })
app.register(proxy, { upstream: `http://127.0.0.1:${process.argv[2]}`, websocket: true })
process.stdout.write(`${await app.listen({ port: 0, host: '127.0.0.1' })}\n`)
process.once('SIGTERM', () => process.exit())
