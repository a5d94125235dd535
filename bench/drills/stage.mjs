// What a drill plays on: the real program with an embedded database, and the upstreams behind it.
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startProgram, temporaryFolder } from '../processes.mjs'

const cli = new URL('../../dist/cli.js', import.meta.url)

/** @param {number} [port] to come back where it was */
export function startUpstream(port = 0) {
  return startProgram('drills/serve-upstream.mjs', ['--port', String(port)])
}

/**
 * @param {object} settings YAML that is added to the sections
 * @param {number} [settings.upstreams] how many services are started
 * @param {string[]} [settings.targets] others, which run already
 * @param {string[]} [settings.weighted] more of them, as YAML
 * @param {Record<string, string>} [settings.others] upstreams beside `service`, by name
 * @param {string[]} [settings.before] a command that runs the gateway, as `unshare` does
 * @param {string} [settings.server]
 * @param {string} [settings.upstream]
 * @param {string} [settings.settings]
 */
export async function startStage({
  upstreams: count = 1,
  targets: running = [],
  weighted = [],
  others = {},
  before = [],
  server = '',
  upstream = '',
  settings = '',
} = {}) {
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
  // The embedded database's first start makes it, and may leave hundreds of MiB uncollected: not what is drilled.
  await promisify(execFile)(process.execPath, [fileURLToPath(cli), 'migrate', '-c', file])
  const gateway = await startProgram('../dist/cli.js', ['start', '-c', file], {}, before)
  return {
    gateway,
    upstreams,
    file,
    async stop() {
      await Promise.all([gateway, ...upstreams].map(running => running.stop()))
      folder.remove()
    },
  }
}

const agent = new Agent({ keepAlive: true, maxSockets: 256 })

/**
 * One request; resolves with the answer once its head is there.
 * @param {number} port
 * @param {string} path
 * @param {{ body?: import('node:stream').Readable, length?: number }} [sending]
 * @returns {Promise<import('node:http').IncomingMessage>}
 */
export function ask(port, path, { body, length } = {}) {
  return new Promise((resolve, reject) => {
    const method = body === undefined ? 'GET' : 'POST'
    const headers = length === undefined ? {} : { 'content-length': length }
    const sent = request({ host: '127.0.0.1', port, path, method, headers, agent })
    sent.on('response', resolve).on('error', reject)
    if (body === undefined) sent.end()
    else body.pipe(sent)
  })
}

/** @param {number} port @param {string} path */
export async function askJson(port, path, sending = {}) {
  let text = ''
  for await (const chunk of await ask(port, path, sending)) text += chunk
  return JSON.parse(text)
}
