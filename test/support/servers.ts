// Starts Postgres and Redis servers on free loopback ports in temporary folders.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  accessSync,
  chownSync,
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { childrenOf, waitUntilStopped } from './process-stat.ts'

export interface Server {
  readonly url: string
  readonly port: number
  /** The PID of the main process. It changes with `restart`. */
  readonly pid: number
  /** Freezes the server like an overloaded machine: it accepts connections but sends nothing. */
  pause(): void
  resume(): void
  /** Kills the server, even if it is paused, and waits for its end. Its data stays, so that `restart` can use it. */
  kill(): Promise<void>
  /** Starts the server again, with the same port and the same data. */
  restart(): Promise<void>
  /** Ends the server and deletes its data. */
  stop(): Promise<void>
}

/** Returns the folder that contains `postgres` and `initdb`, or `undefined` if there is none. */
export function findPostgres(): string | undefined {
  const packaged = '/usr/lib/postgresql'
  const versions = list(packaged).sort((a, b) => Number(b) - Number(a))
  const folders = [...searchPath(), ...versions.map(version => join(packaged, version, 'bin'))]
  return folders.find(folder => isProgram(join(folder, 'postgres')) && isProgram(join(folder, 'initdb')))
}

/** Returns the path of a program, or `undefined`. Looks in PATH, and in the sbin folders, which PATH often lacks. */
export function findProgram(name: string): string | undefined {
  return [...searchPath(), '/usr/sbin', '/usr/local/sbin'].map(folder => join(folder, name)).find(isProgram)
}

/**
 * Starts a Postgres with trust authentication. The role and the database are named `postgres`.
 * @param bin the result of `findPostgres`
 * @param options `socketFolder`: a folder for a Unix socket, writable for any user; `settings`: entries `name=value`;
 *   `folder`: a folder for the data, which `stop` deletes; `env`: variables to add to the environment
 */
export async function startPostgres(
  bin: string,
  {
    maxConnections = 200,
    socketFolder = '',
    settings = [],
    folder = mkdtempSync(join(tmpdir(), 'peage-test-postgres-')),
    env = {},
  }: {
    maxConnections?: number
    socketFolder?: string
    settings?: readonly string[]
    folder?: string
    env?: Readonly<Record<string, string>>
  } = {},
): Promise<Server> {
  const user = unprivilegedUser()
  if (user !== undefined) chownSync(folder, user.uid, user.gid)
  const data = join(folder, 'data')
  const quick = ['--auth=trust', '--username=postgres', '--encoding=UTF8', '--locale=C', '--no-sync']
  await promisify(execFile)(join(bin, 'initdb'), [...quick, '-D', data], { cwd: folder, ...user })
  const port = await freePort()
  const all = [
    'fsync=off',
    // Otherwise, a server that a test kills would leave its shared memory behind.
    'dynamic_shared_memory_type=mmap',
    `max_connections=${maxConnections}`,
    `unix_socket_directories=${socketFolder}`,
    'listen_addresses=127.0.0.1',
    ...settings,
  ]
  const flags = ['-D', data, '-p', String(port), ...all.flatMap(setting => ['-c', setting])]
  return startServer({
    program: join(bin, 'postgres'),
    flags,
    folder,
    env: { ...process.env, ...env },
    user,
    port,
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    isReady: url => answers(url),
  })
}

export type RedisRole = 'server' | 'sentinel' | 'cluster'

/** Starts a Redis without persistence. @param bin the path of redis-server @param more additional flags */
export async function startRedis(
  bin: string,
  as: RedisRole = 'server',
  more: readonly string[] = [],
): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), 'peage-test-redis-'))
  const port = await freePort()
  const shared = `--port ${port} --bind 127.0.0.1 --dir ${folder}`.split(' ')
  const inMemory = [...shared, '--appendonly', 'no', '--save', '']
  const sentinelFile = join(folder, 'sentinel.conf')
  if (as === 'sentinel') writeFileSync(sentinelFile, '')
  const flags = {
    server: inMemory,
    // The port of the cluster bus must be set. Its default is the port plus 10,000, which may exceed 65,535.
    cluster: [
      ...inMemory,
      ...`--cluster-enabled yes --cluster-port ${await freePort()} --cluster-announce-ip 127.0.0.1`.split(
        ' ',
      ),
    ],
    sentinel: [sentinelFile, '--sentinel', ...shared],
  }[as]
  return startServer({
    program: bin,
    flags: [...flags, ...more],
    folder,
    user: undefined,
    port,
    url: `redis://127.0.0.1:${port}`,
    isReady: () => canConnect(port),
  })
}

export interface ServerPlan {
  program: string
  flags: readonly string[]
  /** The working directory, which `stop` deletes. */
  folder: string
  env?: NodeJS.ProcessEnv
  user: { uid: number; gid: number } | undefined
  port: number
  url: string
  isReady: (url: string) => Promise<unknown>
}

export async function startServer(plan: ServerPlan): Promise<Server> {
  let child = await launch(plan)
  const running = () => child.exitCode === null && child.signalCode === null
  const tell = (pid: number, signal: NodeJS.Signals) => {
    try {
      process.kill(pid, signal)
    } catch {
      // The process ended after `childrenOf` had listed it, so it needs no signal.
    }
  }
  const tellAll = (signal: NodeJS.Signals) => {
    if (child.pid === undefined || !running()) return
    for (const pid of [child.pid, ...childrenOf(child.pid)]) tell(pid, signal)
  }
  /** Stops the main process first, so that it starts no more children. Then stops the children (Postgres backends). */
  const pause = () => {
    if (child.pid === undefined || !running()) return
    tell(child.pid, 'SIGSTOP')
    waitUntilStopped(child.pid)
    tellAll('SIGSTOP')
  }
  const server: Server = {
    url: plan.url,
    port: plan.port,
    get pid() {
      return child.pid ?? 0
    },
    pause,
    resume: () => tellAll('SIGCONT'),
    async kill() {
      // Without `ref`, this process could exit before the child has ended.
      child.ref()
      const exited = running() ? once(child, 'exit') : undefined
      // The server is paused first. Otherwise, a backend that is just starting could survive the kill.
      pause()
      tellAll('SIGKILL')
      await exited
    },
    async restart() {
      await server.kill()
      child = await launch(plan)
    },
    async stop() {
      await server.kill()
      rmSync(plan.folder, { recursive: true, force: true, maxRetries: 10 })
    },
  }
  return server
}

async function launch({
  program,
  flags,
  folder,
  env,
  user,
  url,
  isReady,
}: ServerPlan): Promise<ChildProcess> {
  const log = join(folder, 'output')
  const output = openSync(log, 'a')
  const child = spawn(program, flags, {
    cwd: folder,
    env: env ?? process.env,
    stdio: ['ignore', output, output],
    ...user,
  })
  closeSync(output)
  endWithUs(child, folder)
  const failed = once(child, 'exit').then(([code]) => {
    throw new Error(`${program} ended with ${code} before it was ready: ${readFileSync(log, 'utf8').trim()}`)
  })
  failed.catch(() => {})
  const deadline = Date.now() + 30_000
  for (;;) {
    try {
      await Promise.race([isReady(url), failed])
      child.unref()
      return child
    } catch (error) {
      if (child.exitCode !== null || child.signalCode !== null || Date.now() > deadline) {
        child.kill('SIGKILL')
        throw error
      }
      await sleep(20)
    }
  }
}

/**
 * Cleans up even if the run is killed. A shell waits until its pipe to the run is closed, and then kills the server.
 */
function endWithUs(child: ChildProcess, folder: string): void {
  const cleanUp = 'read _; kill -9 "$1"; rm -rf "$2"'
  const guard = spawn('sh', ['-c', cleanUp, 'sh', String(child.pid), folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  guard.unref()
  child.once('exit', () => guard.kill('SIGKILL'))
}

export function searchPath(): string[] {
  return (process.env.PATH ?? '').split(delimiter).filter(folder => folder !== '')
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

export function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** If this process is root, returns another user for Postgres, because Postgres refuses to run as root. */
export function unprivilegedUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map(line => line.split(':'))
  const user = users.find(([name]) => name === 'postgres') ?? users.find(([name]) => name === 'nobody')
  if (user === undefined) throw new Error('Postgres needs the user `postgres` or `nobody`')
  return { uid: Number(user[2]), gid: Number(user[3]) }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

async function answers(url: string): Promise<void> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 1_000 })
  client.on('error', () => {})
  try {
    await client.connect()
  } finally {
    await client.end()
  }
}

export async function canConnect(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
  } finally {
    socket.destroy()
  }
}
