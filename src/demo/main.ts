// `npm run demo`: a service, a gateway in front of it, and a walk through both; then they stay up to play with.
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../clock.ts'
import { loadConfig } from '../config/load.ts'
import { formatProblem } from '../config/problem.ts'
import { createLogger } from '../log.ts'
import { type RunningServer, startServer } from '../server.ts'
import { createDemoClient } from './client.ts'
import { demoConfig } from './config.ts'
import { createPrinter, type Printer } from './printer.ts'
import { startDemoUpstream } from './upstream.ts'
import { walk } from './walk.ts'

const printer = createPrinter(process.stdout)
const folder = await mkdtemp(join(tmpdir(), 'peage-demo-'))
const upstream = await startDemoUpstream({ host: '127.0.0.1', port: 0 })
const { server, adminToken } = await startGateway()
process.once('SIGINT', stop).once('SIGTERM', stop)

const client = createDemoClient(printer)
const place = { gateway: server.address, admin: String(server.adminAddress), adminToken }
const { token } = await walk(client, place)
process.exitCode = client.allAsDue ? 0 : 1
printer.line()
printer.line(client.allAsDue ? 'Every step answered as it should.' : 'A step did not answer as it should.')
if (process.argv.includes('--exit')) await stop()
else invite(printer, place, token)

async function startGateway(): Promise<{ server: RunningServer; adminToken: string }> {
  const adminToken = randomBytes(18).toString('base64url')
  const file = join(folder, 'gateway.yaml')
  const target = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
  const text = demoConfig(target, join(folder, 'data'), adminToken)
  await writeFile(file, text)
  printer.heading('Péage demo')
  printer.line(`Starting a gateway on an embedded database in ${folder} …`)
  const loaded = loadConfig({ file, env: {} })
  if ('problems' in loaded) throw new Error(loaded.problems.map(formatProblem).join('\n'))
  const logger = createLogger({ level: 'error', requests: false }, process.stderr)
  const server = await startServer({ config: loaded.config, clock: systemClock, logger })
  printer.line(
    `Ready: ${server.address}, its admin listener ${server.adminAddress}, its configuration ${file}`,
  )
  return { server, adminToken }
}

function invite(printer: Printer, { gateway, admin, adminToken }: typeof place, token: string): void {
  printer.line()
  printer.heading('It stays up. To go on by hand (Ctrl-C ends it and removes the folder):')
  printer.line(`curl -i ${gateway}/news`)
  printer.line(`curl -i ${gateway}/api/v1/courses/1 -H 'Authorization: Bearer ${token}'`)
  printer.line(
    `curl -i ${gateway}/api/v1/auth/login -d '{"email":"ada@example.com","password":"correct horse battery"}'`,
  )
  printer.line(`curl -i ${admin}/readyz`)
  printer.line(`curl -i ${admin}/admin/v1/users -H 'Authorization: Bearer ${adminToken}'`)
}

async function stop(): Promise<void> {
  await server.stop()
  upstream.closeAllConnections()
  upstream.close()
  await rm(folder, { recursive: true, force: true })
}
