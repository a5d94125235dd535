// The demo: a service, a gateway in front of it, and a walk through both.
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../clock.ts'
import { formatProblem } from '../config/diagnostics.ts'
import { loadConfig } from '../config/load.ts'
import { createLogger, type Output } from '../observability/logger.ts'
import { type RunningServer, startServer } from '../server/start-server.ts'
import { createDemoClient } from './client.ts'
import { demoConfig } from './config.ts'
import { createPrinter, type Printer } from './printer.ts'
import { startDemoUpstream } from './upstream.ts'
import { walk } from './walk.ts'

interface Parts {
  output: Output
  errors: Output
  /** Asked after the walk: the demo stays up until it resolves. Absent: the demo ends after the walk. */
  untilEnd?: (() => Promise<unknown>) | undefined
}

interface Place {
  gateway: string
  admin: string
  adminToken: string
}

/** @returns whether every step answered as expected. @throws whatever keeps the gateway from starting */
export async function runDemo({ output, errors, untilEnd }: Parts): Promise<boolean> {
  const printer = createPrinter(output)
  const folder = await mkdtemp(join(tmpdir(), 'peage-demo-'))
  const upstream = await startDemoUpstream({ host: '127.0.0.1', port: 0 })
  let server: RunningServer | undefined
  try {
    printer.heading('Péage demo')
    printer.line(`Starting a gateway on an embedded database in ${folder} …`)
    const adminToken = randomBytes(18).toString('base64url')
    const file = join(folder, 'gateway.yaml')
    const target = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
    await writeFile(file, demoConfig(target, join(folder, 'data'), adminToken))
    server = await startGateway(file, errors)
    printer.line(
      `Ready: ${server.address}, its admin listener ${server.adminAddress}, its configuration ${file}`,
    )
    const client = createDemoClient(printer)
    const place = { gateway: server.address, admin: String(server.adminAddress), adminToken }
    const { token } = await walk(client, place)
    printer.line()
    printer.line(
      client.allAsDue ? 'Every step answered as it should.' : 'A step did not answer as it should.',
    )
    if (untilEnd !== undefined) {
      invite(printer, place, token)
      await untilEnd()
    }
    return client.allAsDue
  } finally {
    await server?.stop()
    upstream.closeAllConnections()
    upstream.close()
    await rm(folder, { recursive: true, force: true })
  }
}

async function startGateway(file: string, errors: Output): Promise<RunningServer> {
  const loaded = loadConfig({ file, env: {} })
  if ('problems' in loaded) throw new Error(loaded.problems.map(formatProblem).join('\n'))
  const logger = createLogger({ level: 'error', requests: false }, errors)
  return startServer({ config: loaded.config, clock: systemClock, logger })
}

function invite(printer: Printer, { gateway, admin, adminToken }: Place, token: string): void {
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
