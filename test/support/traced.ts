// Starts the gateway as a separate process with tracing. Environment variables contain the address of the collector.
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Answer, call, login } from './client.ts'
import type { Collector, SentSpan } from './collector.ts'
import { makeDatabase } from './embedded.ts'
import { embedded, type Stores } from './gateway.ts'
import { type Program, startProgram } from './program.ts'
import { poolSize } from './services.ts'

export interface Traced extends Program {
  readonly file: string
  /** Sends a request in a new trace. @returns the response, the spans of the trace and the ID of the client's span */
  ask(
    method: string,
    path: string,
    options?: Parameters<typeof call>[3],
  ): Promise<{ answer: Answer; spans: SentSpan[]; parent: string }>
  /** Registers a user. @returns the user with a token pair */
  newUser(): Promise<{ id: number; email: string; access: string; refresh: string }>
  stop(): Promise<void>
}

export const password = 'correct horse battery'
export const adminToken = 'a-token-for-operators-0123456789'

interface Settings {
  /** The part of gateway.yaml from `upstreams:` to the end. */
  routes: string
  stores?: Stores
  env?: Record<string, string>
}

/** @param collector receives the traces; if it is undefined, the gateway sends no traces */
export async function startTraced(
  collector: Collector | undefined,
  { routes, stores = embedded, env = {} }: Settings,
): Promise<Traced> {
  const folder = await mkdtemp(join(tmpdir(), 'peage-traced-'))
  const data = join(folder, 'data')
  if (stores.postgres === '') await makeDatabase(data)
  const file = join(folder, 'gateway.yaml')
  await writeFile(
    file,
    `server: { listen: '127.0.0.1:0', drain_timeout: 5s }
admin: { listen: '127.0.0.1:0', token: ${adminToken} }
storage: { postgres: '${stores.postgres}', redis: '${stores.redis}', data_dir: ${JSON.stringify(data)}, pool: ${poolSize} }
auth: { rate_limits: { register: 0 } }
${routes}`,
  )
  const told = collector && { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '20' }
  const program = await startProgram(file, { ...told, ...env })
  return {
    ...program,
    file,
    async ask(method, path, options = {}) {
      const traceId = randomBytes(16).toString('hex')
      const parent = randomBytes(8).toString('hex')
      const headers = { traceparent: `00-${traceId}-${parent}-01`, ...options.headers }
      const answer = await call(program.url, method, path, { ...options, headers })
      return { answer, parent, spans: (await collector?.trace(traceId)) ?? [] }
    },
    async newUser() {
      const email = `traced.${randomBytes(6).toString('hex')}@example.com`
      const body = { email, password }
      const registered = await call(program.url, 'POST', '/api/v1/auth/register', { body })
      return { id: Number(registered.body.user_id), email, ...(await login(program.url, email, password)) }
    },
    async stop() {
      program.child.kill('SIGTERM')
      await program.ended
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Returns one line for each span below `parent`, with its kind and name. Child spans are indented. */
export function treeOf(spans: readonly SentSpan[], parent: string, depth = 0): string[] {
  return spans
    .filter(span => span.parentSpanId === parent)
    .flatMap(span => [
      `${'  '.repeat(depth)}${span.kind} ${span.name}`,
      ...treeOf(spans, span.spanId, depth + 1),
    ])
}

/** Returns the first span with this name. */
export function spanOf(spans: readonly SentSpan[], name: string): SentSpan {
  const span = spans.find(one => one.name === name)
  if (span === undefined) throw new Error(`no ${name} among ${spans.map(one => one.name).join(', ')}`)
  return span
}
