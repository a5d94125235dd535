// `npm run demo` starts a service and a gateway, and shows the features of the gateway. With `--exit`, the demo ends
// after the last feature. Otherwise, the demo runs until Ctrl-C.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { createDemoClient } from './client.mjs'
import { demoConfig } from './config.mjs'
import { createPrinter } from './printer.mjs'
import { walk } from './scenario.mjs'
import { startDemoUpstream } from './upstream.mjs'

const peage = fileURLToPath(new URL('../dist/cli.js', import.meta.url))

// The signal listeners are added before the first step. Without a listener, a signal during a step would end the
// process at once, and the temporary folder would remain.
const ended = Promise.race(['SIGTERM', 'SIGINT'].map(signal => once(process, signal)))
const printer = createPrinter(process.stdout)
const folder = await mkdtemp(join(tmpdir(), 'peage-demo-'))
const upstream = await startDemoUpstream({ host: '127.0.0.1', port: 0 })
let gateway
try {
  printer.heading('Péage demo')
  printer.line(`Starting a gateway on an embedded database in ${folder} …`)
  const adminToken = randomBytes(18).toString('base64url')
  const file = join(folder, 'gateway.yaml')
  const { port } = /** @type {import('node:net').AddressInfo} */ (upstream.address())
  const target = `http://127.0.0.1:${port}`
  await writeFile(file, demoConfig(target, join(folder, 'data'), adminToken))
  gateway = await startGateway(file)
  printer.line(
    `Ready at ${gateway.address} (admin listener: ${gateway.adminAddress}, configuration: ${file})`,
  )
  const client = createDemoClient(printer)
  const place = { gateway: gateway.address, admin: gateway.adminAddress, adminToken }
  printConsole(place)
  const user = await walk(client, place, gateway.mailOf)
  printer.line()
  printer.line(
    client.allAsDue ? 'Every step had the expected response.' : 'A step had an unexpected response.',
  )
  if (!process.argv.includes('--exit')) {
    invite(place, user)
    await ended
  }
  process.exitCode = client.allAsDue ? 0 : 1
} finally {
  await gateway?.stop()
  upstream.closeAllConnections()
  upstream.close()
  await rm(folder, { recursive: true, force: true })
}

/** Starts the gateway, and resolves when the gateway has printed its ready line. @param {string} file */
async function startGateway(file) {
  const program = spawn(process.execPath, [peage, 'start', '-c', file], {
    // The gateway runs in its own process group, so that only the demo receives Ctrl-C. The demo then stops the
    // gateway.
    detached: true,
    // The gateway refuses `smtp: log` in production, so the demo selects development.
    env: { ...process.env, NODE_ENV: 'development' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(program, 'exit')
  const stop = async () => {
    program.kill()
    await exited
  }
  const log = new EventEmitter()
  /** @type {import('./printer.mjs').Mail[]} */
  const mails = []
  createInterface({ input: program.stdout }).on('line', line => {
    const entry = line.startsWith('{') ? JSON.parse(line) : {}
    if (entry.address !== undefined) log.emit('ready', entry)
    if (entry.msg === 'mail') {
      mails.push(entry)
      log.emit('mail')
    }
  })
  const ended = exited.then(() => {
    throw new Error('the gateway ended before it was ready')
  })
  try {
    const [{ address, admin_address }] = await Promise.race([once(log, 'ready'), ended])
    ended.catch(() => {})
    /**
     * Prints the next mail of a kind and resolves with it.
     * @type {(kind: string) => Promise<import('./printer.mjs').Mail>}
     */
    const mailOf = async kind => {
      const at = mails.findIndex(mail => mail.kind === kind)
      const mail = mails[at]
      if (mail === undefined) {
        await once(log, 'mail')
        return mailOf(kind)
      }
      mails.splice(at, 1)
      printer.mail(mail)
      return mail
    }
    return { address, adminAddress: admin_address, mailOf, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/**
 * @param {import('./scenario.mjs').Place} place
 * @param {{ token: string, email: string, password: string }} user
 */
function invite({ gateway, admin, adminToken }, { token, email, password }) {
  printer.line()
  printer.heading('The gateway keeps running. Try these commands (Ctrl-C stops it and deletes its data):')
  printer.line(`curl -i ${gateway}/news`)
  printer.line(`curl -i ${gateway}/api/v1/courses/1 -H 'Authorization: Bearer ${token}'`)
  printer.line(`curl -i ${gateway}/api/v1/auth/login -d '${JSON.stringify({ email, password })}'`)
  printer.line(`curl -i ${admin}/readyz`)
  printer.line(`curl -i ${admin}/admin/v1/users -H 'Authorization: Bearer ${adminToken}'`)
  printConsole({ admin, adminToken })
}

/** @param {Omit<import('./scenario.mjs').Place, 'gateway'>} place */
function printConsole({ admin, adminToken }) {
  printer.line(`Console: ${admin}/console (token: ${adminToken})`)
}
