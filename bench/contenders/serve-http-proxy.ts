// The program of the contender `@fastify/http-proxy`.
import proxy from '@fastify/http-proxy'
import fastify from 'fastify'

const app = fastify()
app.register(proxy, { upstream: `http://127.0.0.1:${process.argv[2]}` })
process.stdout.write(`${await app.listen({ port: 0, host: '127.0.0.1' })}\n`)
process.once('SIGTERM', () => process.exit())
