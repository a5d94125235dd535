// Child processes of the benchmark: each says on its first line where it listens, and ends when it is told.
import { spawn } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * @typedef {object} Running
 * @property {number} port on 127.0.0.1
 * @property {number[]} ports with the other addresses that it listens on
 * @property {number[]} pids every process whose CPU counts
 * @property {() => Promise<void>} stop
 */

/** A new folder for one contender's files; `remove` deletes it. */
export function temporaryFolder() {
  const path = mkdtempSync(join(tmpdir(), 'peage-bench-'))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

/**
 * Starts a program whose standard output goes to a file, as an operator's log does, and waits for its address there.
 * @param {string} program a path from bench/, or absolute
 * @param {string[]} words
 * @param {Record<string, string>} env beside what this process has
 * @returns {Promise<Running>}
 */
export async function startProgram(program, words = [], env = {}) {
  const folder = temporaryFolder()
  const log = join(folder.path, 'stdout')
  const output = openSync(log, 'a')
  const path = fileURLToPath(new URL(program, import.meta.url))
  const child = spawn(process.execPath, [...nodeOptions(), path, ...words], {
    stdio: ['ignore', output, 'inherit'],
    env: { ...process.env, ...env },
  })
  closeSync(output)
  const ended = new Promise(resolve => child.once('exit', resolve))
  const stop = async () => {
    child.kill('SIGTERM')
    await ended
    folder.remove()
  }
  const ports = await portsIn(log, child)
  return { port: ports[0] ?? 0, ports, pids: [/** @type {number} */ (child.pid)], stop }
}

/** `BENCH_NODE_OPTIONS`, for a profile: `--cpu-prof --cpu-prof-dir=/tmp/profiles`. */
function nodeOptions() {
  return (process.env.BENCH_NODE_OPTIONS ?? '').split(' ').filter(word => word !== '')
}

/**
 * @param {string} log
 * @param {import('node:child_process').ChildProcess} child
 */
async function portsIn(log, child) {
  for (let waited = 0; waited < 30_000 && child.exitCode === null; waited += 50) {
    const [line] = /^.*http:\/\/127\.0\.0\.1:\d+.*$/m.exec(readFileSync(log, 'utf8')) ?? []
    if (line !== undefined) {
      const addresses = line.matchAll(/http:\/\/127\.0\.0\.1:(\d+)/g)
      return [...new Set([...addresses].map(([, port]) => Number(port)))]
    }
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  child.kill('SIGKILL')
  throw new Error(`no address in 30 s from ${child.spawnargs.join(' ')}: ${readFileSync(log, 'utf8')}`)
}
