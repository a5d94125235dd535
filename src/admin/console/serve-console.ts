// Serves the console: its page, its files, and the sessions of signed-in operators.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '../../clock.ts'
import { responseSchemas } from '../../openapi/operation.ts'
import { rateLimited } from '../../refusals/limits.ts'
import { Refusal } from '../../refusals/refusal.ts'
import { createMemoryRateLimiter } from '../../storage/memory-rate-limiter.ts'
import { readBody } from '../api/input.ts'
import { refuseOtherMethods } from '../api/serve-api.ts'
import type { AuditStore } from '../audit-store.ts'
import { rejectForeignOrigin } from '../cross-site.ts'
import type { Operators } from '../operators.ts'
import { type Asset, type ConsoleAssets, chooseCoding } from './assets.ts'
import type { SeenByBrowser } from './browser-view.ts'
import type { ConsoleSession, ConsoleSessions } from './console-sessions.ts'
import { readCookies, writeCookie } from './cookies.ts'
import { consoleOperations } from './session.openapi.ts'

export interface ConsoleDependencies {
  /** Whether `admin.console` of the current configuration is on. */
  isConsoleOn(): boolean
  /** Reads the console's files. The function is called when a browser requests the first file. */
  consoleAssets(): Promise<ConsoleAssets>
  operators(): Operators
  seenByBrowser: SeenByBrowser
  audit: AuditStore
  clock: Clock
}

/** The number of wrong tokens allowed per address and minute. Every further wrong token gets 429. */
const wrongTokens = { limit: 10, windowMs: 60_000 }

/** The content security policy of the page. It allows only the page's own files and no inline code. */
const policy = [
  "default-src 'none'",
  ...['script', 'style', 'img', 'font', 'connect'].map(kind => `${kind}-src 'self'`),
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

const rootPath = '/'
const pagePath = '/console'
const filePath = '/console/assets/:name'

/** @param app an instance that refuses cross-site requests */
export function serveConsole(
  app: FastifyInstance,
  sessions: ConsoleSessions,
  { isConsoleOn, consoleAssets, operators, seenByBrowser, audit, clock }: ConsoleDependencies,
): void {
  let reading: Promise<ConsoleAssets> | undefined
  const assets = () => {
    reading ??= consoleAssets()
    return reading
  }
  const wrong = createMemoryRateLimiter(wrongTokens, clock)
  const { signIn, show, signOut } = consoleOperations
  app.addHook('onRequest', async () => {
    if (!isConsoleOn()) throw new Refusal('route_unknown')
  })

  // The listener sends `no-store` with the redirect. Without `no-store`, browsers could keep the redirect after the
  // console is switched off.
  app.get(rootPath, async (_request, reply) => reply.redirect(pagePath, 302))

  app.get(pagePath, async (request, reply) => send(request, reply, (await assets()).page))

  app.get<{ Params: { name: string } }>(filePath, async (request, reply) => {
    const file = (await assets()).files.get(request.params.name)
    if (file === undefined) throw new Refusal('route_unknown')
    return send(request, reply.header('cache-control', 'public, max-age=31536000, immutable'), file)
  })

  app.post(signIn.path, async (request, reply) => {
    const { origin, isSecure, client } = seenByBrowser(request.raw)
    rejectForeignOrigin(request.headers, origin)
    const body = await readBody(request, signIn, () => {})
    const operator = operators().findByToken(body.string('token'))
    if (operator === undefined) {
      const { allowed, used, resetMs } = wrong.consume(client)
      if (allowed) throw unauthorized('unknown')
      const { limit, windowMs } = wrongTokens
      const state = { limit, windowMs, remaining: limit - used, resetSeconds: Math.ceil(resetMs / 1_000) }
      throw rateLimited({ policy: 'console', key: 'console_sign_in' }, state)
    }
    await audit.write({
      at: new Date(clock.now()),
      operator: operator.name,
      channel: 'console',
      method: signIn.method,
      route: signIn.path,
      user_id: null,
      changes: {},
      previous: null,
      status: 204,
      request_id: request.id,
    })
    for (const value of readCookies(request.headers.cookie, isSecure)) sessions.close(value)
    return reply
      .code(204)
      .header('set-cookie', writeCookie(sessions.open(operator), isSecure))
      .send()
  })

  app.get(show.path, { schema: { response: responseSchemas(show) } }, async ({ raw, headers }) => {
    const session = findSession(sessions, headers.cookie, seenByBrowser(raw).isSecure)
    if (typeof session === 'string') throw unauthorized(session)
    const { operator, expiresAt } = session
    return { operator: operator.name, may: operator.may, expires_at: expiresAt }
  })

  app.delete(signOut.path, async ({ raw, headers }, reply) => {
    const { origin, isSecure } = seenByBrowser(raw)
    rejectForeignOrigin(headers, origin)
    for (const value of readCookies(headers.cookie, isSecure)) sessions.close(value)
    return reply.code(204).header('set-cookie', writeCookie('', isSecure)).send()
  })

  refuseOtherMethods(app, [
    ...[rootPath, pagePath, filePath].map(path => ({ method: 'GET', path })),
    ...Object.values(consoleOperations),
  ])
}

/** @returns the first valid session among the cookies, or the reason why there is none */
export function findSession(
  sessions: ConsoleSessions,
  cookie: string | undefined,
  isSecure: boolean,
): ConsoleSession | 'missing' | 'session_ended' {
  const values = readCookies(cookie, isSecure)
  for (const value of values) {
    const session = sessions.find(value)
    if (session !== undefined) return session
  }
  return values.length === 0 ? 'missing' : 'session_ended'
}

function send({ headers }: FastifyRequest, reply: FastifyReply, { type, bodies }: Asset): FastifyReply {
  const coding = chooseCoding([headers['accept-encoding'] ?? []].flat().join(','))
  if (coding !== 'identity') reply.header('content-encoding', coding)
  return reply
    .type(type)
    .header('vary', 'accept-encoding')
    .header('content-security-policy', policy)
    .header('referrer-policy', 'no-referrer')
    .send(bodies.get(coding))
}

function unauthorized(reason: string): Refusal {
  return new Refusal('admin_unauthorized', { reason, headers: { 'www-authenticate': 'Bearer' } })
}
