// Starts the real program, `node dist/cli.js`, in a separate process.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const cli = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))

export interface Program {
  readonly child: ChildProcess
  readonly url: string
  readonly admin: string
  /** The lines of standard output so far. */
  readonly lines: string[]
  /** Resolves when the process ends: with the exit status, or with the name of the signal that ended the process. */
  readonly ended: Promise<number | string>
}

/**
 * Starts a gateway, and waits for the log line `ready on …`.
 * @param isPiped whether the program reads the configuration from a pipe
 * @param before a command to put before the program, for example `unshare`
 */
export async function startProgram(
  file: string,
  env: Record<string, string> = {},
  isPiped = false,
  before: readonly string[] = [],
): Promise<Program> {
  const [command = '', ...words] = isPiped
    ? ['bash', '-c', 'exec "$0" "$1" start -c <(cat "$2")', process.execPath, cli, file]
    : [...before, process.execPath, cli, 'start', '-c', file]
  const child = spawn(command, words, {
    env: { ...inherited(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = once(child, 'exit').then(([code, signal]) => (code ?? signal) as number | string)
  const lines: string[] = []
  let errors = ''
  child.stderr.on('data', chunk => {
    errors += chunk
  })
  const addresses = new Promise<{ address: string; admin_address: string }>((resolve, reject) => {
    let rest = ''
    child.stdout.on('data', chunk => {
      const parts = (rest + chunk).split('\n')
      rest = parts.pop() ?? ''
      lines.push(...parts)
      const ready = parts.find(line => line.includes('"ready on '))
      if (ready !== undefined) resolve(JSON.parse(ready))
    })
    ended.then(how => reject(new Error(`the program ended (${how}) before it was ready: ${errors}`)))
  })
  const { address, admin_address: admin } = await addresses
  return { child, url: address, admin, lines, ended }
}

/** The environment for the program. It includes the mark of the run's processes (see left-processes.ts). */
function inherited() {
  const { PATH, TEST_RUN } = process.env
  return { PATH, TEST_RUN }
}

/** Runs a command of the program to its end. */
export async function runProgram(words: string[], cwd: string, env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [cli, ...words], { cwd, env: { ...inherited(), ...env } })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', chunk => {
    stdout += chunk
  })
  child.stderr.on('data', chunk => {
    stderr += chunk
  })
  child.stdin.end()
  const [code] = (await once(child, 'close')) as [number]
  return { code, stdout, stderr }
}
