// Tests the start, the log and the shutdown of the real program, which runs in its own process.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { call, login } from '../support/client.ts'
import { makeDatabase } from '../support/embedded.ts'
import { routes } from '../support/journey.ts'
import { type Program, runProgram, startProgram } from '../support/program.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'

const password = 'correct horse battery'
const adminToken = 'a-token-for-operators-0123456789'

describe('the program', () => {
  let folder: string
  let file: string
  let upstream: Upstream
  /** The running program. A test that ends it starts it again for the next test. */
  let program: Program
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'peage-program-'))
    upstream = await startUpstream()
    file = join(folder, 'gateway.yaml')
    await writeFile(
      file,
      `server: { listen: '127.0.0.1:0', drain_timeout: 5s }
admin: { listen: '127.0.0.1:0', token: ${adminToken} }
storage: { data_dir: ${JSON.stringify(join(folder, 'data'))} }
auth: { rate_limits: { register: 0 } }
${routes(upstream.url)}`,
    )
    await makeDatabase(join(folder, 'data'))
    program = await startProgram(file)
  })
  afterAll(async () => {
    program?.child.kill('SIGTERM')
    await program?.ended
    await upstream?.close()
    await rm(folder, { recursive: true, force: true })
  })

  it('refuses a data folder that another gateway uses, with one error line and exit code 1', async () => {
    const second = await runProgram(['start', '-c', file], folder)
    expect(second.code).toBe(1)
    expect(second.stderr).toMatch(/^error: the data folder .* is in use by another Péage \(process \d+\)/)
  })

  it('logs one JSON line per request, without any credential, cookie or query string', async () => {
    const email = 'logged@example.com'
    const registered = await call(program.url, 'POST', '/api/v1/auth/register', { body: { email, password } })
    const { access, refresh } = await login(program.url, email, password)
    const secrets = { cookie: 'session=c0okie-secret', 'x-api-key': 'peage_k3y-secret' }
    await call(program.url, 'GET', `/any/x?token=qu3ry-secret`, {
      token: access,
      headers: { ...secrets, 'x-request-id': 'my-id-1' },
    })
    await call(program.url, 'GET', '/courses/1', { headers: secrets })
    await call(program.url, 'GET', '/down', { token: access, headers: secrets })
    await call(program.url, 'POST', '/api/v1/auth/refresh', { body: { refresh_token: `${refresh}x` } })
    await call(program.url, 'POST', '/api/v1/auth/logout', { body: { refresh_token: refresh } })
    await call(program.admin, 'GET', '/admin/v1/users', { token: adminToken })
    // When the log contains the line of this request, it also contains all earlier lines.
    await call(program.url, 'GET', '/public/last')
    await expect.poll(() => program.lines.some(line => line.includes('/public/last'))).toBe(true)

    const requests = program.lines.map(line => JSON.parse(line)).filter(line => line.msg === 'request')
    expect(requests).toHaveLength(8)
    expect(requests.find(line => line.request_id === 'my-id-1')).toMatchObject({
      route: 'any',
      user_id: registered.body.user_id,
      decision: 'forwarded',
      outcome: 'complete',
      method: 'GET',
      path: '/any/x',
      status: 200,
      client: '127.0.0.1',
      duration_ms: expect.any(Number),
    })
    expect(requests.find(line => line.route === 'courses')).toMatchObject({
      decision: 'token_invalid',
      status: 401,
    })
    expect(requests.find(line => line.route === 'down')).toMatchObject({
      decision: 'upstream_unreachable',
      status: 502,
    })
    const log = program.lines.join('\n')
    for (const secret of [
      password,
      access,
      refresh,
      adminToken,
      'c0okie',
      'k3y-secret',
      'qu3ry',
      '$argon2',
    ]) {
      expect(log).not.toContain(secret)
    }
  })

  it('on SIGTERM, completes requests in flight, accepts no new requests and exits with 0', async () => {
    const { url, child, lines, ended } = program
    let release = () => {}
    const arrived = new Promise<void>(resolve => {
      upstream.answer = (_request, response) => {
        resolve()
        release = () => response.end('late but whole')
      }
    })
    const answer = call(url, 'GET', '/public/slow')
    await arrived
    child.kill('SIGTERM')
    await expect.poll(() => lines.some(line => line.includes('"draining"'))).toBe(true)
    await expect
      .poll(() =>
        call(url, 'GET', '/public/x').then(
          seen => seen.status,
          () => 'refused',
        ),
      )
      .toBe('refused')
    release()
    expect((await answer).text).toBe('late but whole')
    expect(await ended).toBe(0)
    expect(JSON.parse(String(lines.at(-1)))).toMatchObject({ level: 30, msg: 'stopped' })
    expect(lines.join('\n')).not.toContain(password)
    upstream.answer = undefined
  })

  // A supervisor sends SIGTERM only to npm, which forwards it to the gateway. A terminal sends SIGINT to npm and to the
  // gateway. npm forwards this signal too, so the gateway gets it twice.
  it.each([
    ['SIGTERM', (npm: number) => npm],
    ['SIGINT', (npm: number) => -npm],
  ] as const)('started by npm start, drains once on %s and exits with 0', async (signal, receiverOf) => {
    program.child.kill('SIGTERM')
    await program.ended
    const root = fileURLToPath(new URL('../../', import.meta.url))
    const { PATH, TEST_RUN } = process.env
    const npm = spawn('npm', ['start', '--', '-c', file], {
      cwd: root,
      env: { PATH, TEST_RUN },
      stdio: ['ignore', 'pipe', 'ignore'],
      detached: true,
    })
    const ended = once(npm, 'exit')
    let log = ''
    npm.stdout.on('data', chunk => {
      log += chunk
    })
    await expect.poll(() => log, { timeout: 20_000 }).toContain('"ready on ')
    const [, url = ''] = /"ready on (\S+),/.exec(log) ?? []
    let isAsked = false
    upstream.answer = (_request, response) => {
      isAsked = true
      setTimeout(() => response.end('late but whole'), 300)
    }
    const answer = call(url, 'GET', '/public/slow')
    await expect.poll(() => isAsked).toBe(true)
    process.kill(receiverOf(npm.pid as number), signal)
    expect((await answer).text).toBe('late but whole')
    expect(await ended).toEqual([0, null])
    expect(log.match(/"draining"/g)).toHaveLength(1)
    upstream.answer = undefined
  })

  it('started by npx, drains when npx receives SIGTERM', async () => {
    program.child.kill('SIGTERM')
    await program.ended
    const { PATH, TEST_RUN } = process.env
    // The folder looks like a project in which the package is installed.
    const project = join(folder, 'project')
    await mkdir(join(project, 'node_modules/.bin'), { recursive: true })
    await symlink(fileURLToPath(new URL('../../', import.meta.url)), join(project, 'node_modules/peage'))
    await symlink('../peage/dist/cli.js', join(project, 'node_modules/.bin/peage'))
    const npx = spawn('npx', ['--no-install', 'peage', 'start', '-c', file], {
      cwd: project,
      env: { PATH, TEST_RUN },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    let log = ''
    npx.stdout.on('data', chunk => {
      log += chunk
    })
    // The gateway writes to the same pipe as npx. Therefore, `close` is emitted only after the gateway has ended too.
    const ended = once(npx, 'close')
    await expect.poll(() => log, { timeout: 20_000 }).toContain('"ready on ')
    npx.kill('SIGTERM')
    await ended
    expect(log.trimEnd().split('\n').at(-1)).toContain('"stopped"')
  })

  it('with the command migrate, reports that the database is up to date and exits', async () => {
    const { code, stdout } = await runProgram(['migrate', '-c', file], folder)
    expect([code, stdout]).toEqual([0, 'up to date\n'])
  })

  it('passes every step of the demo, which exits with 0', async () => {
    const demo = fileURLToPath(new URL('../../demo/main.mjs', import.meta.url))
    const { stdout } = await promisify(execFile)(process.execPath, [demo, '--exit'], { cwd: folder })
    expect(stdout).toContain('Every step had the expected response.')
    expect(stdout).toMatch(/^Console: http:\/\/127\.0\.0\.1:\d+\/console \(token: \S+\)$/m)
  })
})
