// Starts child processes of benchmarks and drills, and waits until each one listens. They stop at the end of the run.
import { type ChildProcess, type ExecFileOptions, execFile, spawn } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { atEnd } from './cleanup.ts'
import { processTree } from './process-stat.ts'
import { type ServerPlan, startServer } from './servers.ts'

/** The built command-line program. */
export const cli = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))

export interface Running {
  /** The port on 127.0.0.1. */
  readonly port: number
  /** All ports of the process. */
  readonly ports: readonly number[]
  /** The IDs of the processes whose CPU time is added up. */
  readonly pids: readonly number[]
  stop(): Promise<void>
}

export interface RunningProgram extends Running {
  /** The ID of the main process, which comes first in `pids`. */
  readonly pid: number
  /** Resolves when the process ends: with the exit status, or with null if a signal ended the process. */
  readonly ended: Promise<number | null>
}

export interface TemporaryFolder {
  readonly path: string
  remove(): Promise<void>
}

export function temporaryFolder(): TemporaryFolder {
  const path = mkdtempSync(join(tmpdir(), 'peage-run-'))
  // `rmSync` would block this process during its retries. Retries are needed, because a process of the browser may
  // write files until it has ended.
  return { path, remove: atEnd(() => rm(path, { recursive: true, force: true, maxRetries: 10 })) }
}

/**
 * Starts a Node program whose standard output goes to a file, and waits until the program writes its address there.
 * `pids` includes the workers of the program.
 * @param program the absolute path of the program
 * @param env variables to add to the environment of this process
 * @param before a command to put before the program, for example `unshare`
 * @throws Error with the output of the program if it writes no address within 30 s
 */
export async function startProgram(
  program: string,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
  before: readonly string[] = [],
): Promise<RunningProgram> {
  const folder = temporaryFolder()
  const log = join(folder.path, 'stdout')
  const output = openSync(log, 'a')
  const [command = '', ...rest] = [...before, process.execPath, ...nodeOptions(), program, ...args]
  const child = spawn(command, rest, {
    stdio: ['ignore', output, 'inherit'],
    env: { ...process.env, ...env },
  })
  closeSync(output)
  const stop = stopping(child, folder.remove)
  const ended = new Promise<number | null>(resolve => child.once('exit', resolve))
  const ports = await portsIn(log, child)
  const { pid } = child
  if (pid === undefined) throw new Error(`no process: ${child.spawnargs.join(' ')}`)
  return { port: ports[0] ?? 0, ports, pid, pids: processTree(pid), stop, ended }
}

/**
 * Starts a server of another product.
 * @param counts returns whether the CPU time of a process is added to the sum; by default, all processes are included
 */
export async function startMeasured(
  plan: ServerPlan,
  counts: (pid: number) => boolean = () => true,
): Promise<Running> {
  const server = await startServer(plan)
  const stop = atEnd(() => server.stop())
  // The server may have started short-lived helper processes. They must not count, and they end during this pause.
  await sleep(300)
  return { port: plan.port, ports: [plan.port], pids: processTree(server.pid).filter(counts), stop }
}

/**
 * Runs a program to its end.
 * @returns the standard output and standard error of the program
 * @throws Error with the standard error of the program, if the program fails
 */
export function run(
  program: string,
  args: readonly string[],
  options: ExecFileOptions = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      if (error) reject(new Error(`${program}: ${stderr || error.message}`))
      else resolve(`${stdout}${stderr}`)
    })
    const stop = stopping(child, async () => {})
    child.once('exit', stop)
  })
}

function stopping(child: ChildProcess, onStopped: () => Promise<void>): () => Promise<void> {
  const ended = new Promise(resolve => child.once('exit', resolve).once('error', resolve))
  return atEnd(async () => {
    if (!hasEnded(child)) {
      child.kill('SIGTERM')
      const late = setTimeout(() => child.kill('SIGKILL'), 15_000)
      await ended
      clearTimeout(late)
    }
    await onStopped()
  })
}

function hasEnded({ exitCode, signalCode, pid }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null || pid === undefined
}

/** Returns the Node options from `BENCH_NODE_OPTIONS`, for example `--cpu-prof --cpu-prof-dir=/tmp/profiles`. */
function nodeOptions(): string[] {
  return (process.env.BENCH_NODE_OPTIONS ?? '').split(' ').filter(option => option !== '')
}

async function portsIn(log: string, child: ChildProcess): Promise<number[]> {
  for (let waitedMs = 0; waitedMs < 30_000 && !hasEnded(child); waitedMs += 50) {
    const [line] = /^.*http:\/\/127\.0\.0\.1:\d+.*$/m.exec(readFileSync(log, 'utf8')) ?? []
    if (line !== undefined) {
      const addresses = line.matchAll(/http:\/\/127\.0\.0\.1:(\d+)/g)
      return [...new Set([...addresses].map(([, port]) => Number(port)))]
    }
    await sleep(50)
  }
  child.kill('SIGKILL')
  throw new Error(`no address from ${child.spawnargs.join(' ')}: ${readFileSync(log, 'utf8')}`)
}
