// Starts one gateway with an embedded database, and its upstreams.
import { writeFileSync } from 'node:fs'
import { Agent, type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { cli, type RunningProgram, run, startProgram, temporaryFolder } from '../support/processes.ts'

/** @param port the port of the upstream, or 0 for any free port */
export function startUpstream(port = 0): Promise<RunningProgram> {
  const program = fileURLToPath(new URL('./serve-upstream.js', import.meta.url))
  return startProgram(program, ['--port', String(port)])
}

/** Returns the upstream `service` as YAML. The limit per client is high, because all clients have the same address. */
export function serviceAt(port: number): string {
  return `upstreams: { service: { targets: ['http://127.0.0.1:${port}'], connections_per_client: 128 } }`
}

interface StageOptions {
  /** The number of services to start as targets of the upstream `service`. */
  readonly upstreams?: number
  /** The URLs of additional targets that already run. */
  readonly targets?: readonly string[]
  /** Additional targets with a weight, as YAML. */
  readonly weighted?: readonly string[]
  /** Additional upstreams by name, as YAML. */
  readonly others?: Readonly<Record<string, string>>
  /** A command that runs the gateway, for example `unshare`. */
  readonly before?: readonly string[]
  /** YAML to add to the section `server`. */
  readonly server?: string
  /** YAML to add to the upstream `service`. */
  readonly upstream?: string
  /** Additional sections as YAML. */
  readonly settings?: string
}

export interface Stage {
  readonly gateway: RunningProgram
  readonly upstreams: readonly RunningProgram[]
  /** The path of the gateway.yaml. */
  readonly file: string
  stop(): Promise<void>
}

export async function startStage({
  upstreams: count = 1,
  targets: running = [],
  weighted = [],
  others = {},
  before = [],
  server = '',
  upstream = '',
  settings = '',
}: StageOptions = {}): Promise<Stage> {
  const folder = temporaryFolder()
  const upstreams = await Promise.all(Array.from({ length: count }, () => startUpstream()))
  const urls = [...upstreams.map(({ port }) => `http://127.0.0.1:${port}`), ...running]
  const targets = [...urls.map(url => `'${url}'`), ...weighted]
  const file = join(folder.path, 'gateway.yaml')
  writeFileSync(
    file,
    `server: { listen: '127.0.0.1:0'${server} }
storage: { data_dir: ${JSON.stringify(join(folder.path, 'data'))} }
${settings}
upstreams:
  service: { targets: [${targets.join(', ')}]${upstream}, connections_per_client: 10000 }
${Object.entries(others)
  .map(([name, other]) => `  ${name}: ${other}\n`)
  .join('')}routes:
  - { path: /public/*, upstream: service, auth: none }
  - { path: /guarded/*, upstream: service }
`,
  )
  // The command `migrate` creates the embedded database before the gateway starts. If the gateway created it, its
  // process could keep hundreds of MiB of garbage, and the memory figures would be wrong.
  await run(process.execPath, [cli, 'migrate', '-c', file])
  const gateway = await startProgram(cli, ['start', '-c', file], {}, before)
  return {
    gateway,
    upstreams,
    file,
    async stop() {
      await Promise.all([gateway, ...upstreams].map(running => running.stop()))
      await folder.remove()
    },
  }
}

const agent = new Agent({ keepAlive: true, maxSockets: 256 })

interface Sending {
  readonly body?: Readable
  /** The length to declare in `Content-Length`. If undefined, the body is sent in chunks. */
  readonly length?: number
}

/** Sends a GET, or a POST with `body`. Resolves when the head of the response has arrived. */
export function ask(port: number, path: string, { body, length }: Sending = {}): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const method = body === undefined ? 'GET' : 'POST'
    const headers = length === undefined ? {} : { 'content-length': length }
    const sent = request({ host: '127.0.0.1', port, path, method, headers, agent })
    sent.on('response', resolve).on('error', reject)
    if (body === undefined) sent.end()
    else body.pipe(sent)
  })
}

/** Sends a request to the upstream of the drills. @returns the JSON body of the response */
export async function askJson<T>(port: number, path: string, sending: Sending = {}): Promise<T> {
  let text = ''
  for await (const chunk of await ask(port, path, sending)) text += chunk
  return JSON.parse(text) as T
}
