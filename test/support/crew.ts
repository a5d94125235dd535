// Starts the real program with several workers on Postgres and Redis, and lists its processes.
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { call } from './client.ts'
import type { Stores } from './gateway.ts'
import { childrenOf, isAlive } from './process-stat.ts'
import { type Program, startProgram } from './program.ts'
import { poolSize } from './services.ts'

export interface CrewSettings {
  stores: Stores
  /** The part of gateway.yaml from `upstreams:` to the end. */
  routes: string
  /** Additional members of the `server` section, as text that starts with a comma. */
  server?: string
  workers?: number
  port?: number
  env?: Record<string, string>
}

export interface Crew extends Program {
  /** Returns the IDs of the current worker processes. */
  pids(): number[]
  /** Returns the response of `/readyz`. */
  ready(query?: string): Promise<{ status: number; body: Record<string, unknown> }>
  /** Ends the program. If it still runs after 15 s, kills it with SIGKILL. */
  stop(): Promise<void>
}

export const adminToken = 'a-token-for-operators-0123456789'

export async function startCrew(settings: CrewSettings): Promise<Crew> {
  const folder = await mkdtemp(join(tmpdir(), 'peage-crew-'))
  const program = await startProgram(await writeCrewFile(folder, settings), settings.env)
  const { child, admin } = program
  return {
    ...program,
    pids: () => workersOf(child.pid as number),
    ready: (query = '') => call(admin, 'GET', `/readyz${query}`),
    async stop() {
      const pids = childrenOf(child.pid as number)
      child.kill('SIGTERM')
      const late = setTimeout(() => child.kill('SIGKILL'), 15_000)
      await program.ended
      clearTimeout(late)
      for (const pid of pids.filter(isAlive)) process.kill(pid, 'SIGKILL')
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Returns the IDs of the worker processes. The child process that reads the configuration is not included. */
export function workersOf(pid: number): number[] {
  return childrenOf(pid).filter(child => {
    try {
      return readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('worker.js')
    } catch {
      // The process ended after `childrenOf` had listed it, so it is not included.
      return false
    }
  })
}

/** Writes a gateway.yaml and returns its path. */
export async function writeCrewFile(
  folder: string,
  { stores, routes, server = '', workers = 2, port = 0 }: CrewSettings,
): Promise<string> {
  const file = join(folder, 'gateway.yaml')
  await writeFile(
    file,
    `server: { listen: '127.0.0.1:${port}', workers: ${workers}, drain_timeout: 6s${server} }
admin: { listen: '127.0.0.1:0', token: ${adminToken} }
storage: { postgres: '${stores.postgres}', redis: '${stores.redis}', pool: ${poolSize} }
auth: { key_secret: a secret of tests, rate_limits: { register: 0, login_failures: 0 } }
${routes}`,
  )
  return file
}

export interface Said {
  status: number
  text: string
  /** The first part of the request ID. Each process chooses this part at random, so it identifies the process. */
  worker: string
}

/** Sends a request on a new connection, so that any worker may get it. @throws Error if the connection breaks */
export function ask(url: string, headers: Record<string, string> = {}, body?: string): Promise<Said> {
  const request = url.startsWith('https:') ? requestHttps : requestHttp
  return new Promise((resolve, reject) => {
    const options = {
      agent: false,
      headers,
      rejectUnauthorized: false,
      method: body === undefined ? 'GET' : 'POST',
    }
    request(url, options, response => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', chunk => {
        text += chunk
      })
      response.on('error', reject)
      response.on('end', () => {
        const id = String(response.headers['x-request-id'])
        resolve({ status: Number(response.statusCode), text, worker: id.slice(0, id.lastIndexOf('-')) })
      })
    })
      .on('error', reject)
      .end(body)
  })
}
