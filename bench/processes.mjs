// Child processes of the benchmark: each is waited for until it listens, and ends when it is told or the run ends.
import { execFile, spawn } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { atEnd } from './cleanup.mjs'
import { processTree } from './costs.mjs'
import { isListening } from './ports.mjs'

/**
 * @typedef {object} Running
 * @property {number} port on 127.0.0.1
 * @property {number[]} ports with the other addresses that it listens on
 * @property {number[]} pids every process whose CPU counts
 * @property {() => Promise<void>} stop
 * @property {Promise<number | null>} [ended] the exit status, where it was started here; null after a signal
 */

/** A new folder for one contender's files; `remove` deletes it. */
export function temporaryFolder() {
  const path = mkdtempSync(join(tmpdir(), 'peage-bench-'))
  // What a browser's last process writes meanwhile is deleted in the next try; `rmSync` would only wait for it to go.
  return { path, remove: atEnd(() => rm(path, { recursive: true, force: true, maxRetries: 10 })) }
}

/**
 * Starts a program of ours whose standard output goes to a file, as an operator's log does, and waits for its address there.
 * Its workers count, those that it has by then.
 * @param {string} program a path from bench/, or absolute
 * @param {string[]} words
 * @param {Record<string, string>} env beside what this process has
 * @param {string[]} before a command that runs it, as `unshare` does
 * @returns {Promise<Running>}
 */
export async function startProgram(program, words = [], env = {}, before = []) {
  const folder = temporaryFolder()
  const log = join(folder.path, 'stdout')
  const output = openSync(log, 'a')
  const path = fileURLToPath(new URL(program, import.meta.url))
  const [command = '', ...rest] = [...before, process.execPath, ...nodeOptions(), path, ...words]
  const child = spawn(command, rest, {
    stdio: ['ignore', output, 'inherit'],
    env: { ...process.env, ...env },
  })
  closeSync(output)
  const stop = stopping(child, folder.remove)
  const ended = new Promise(resolve => child.once('exit', resolve))
  const ports = await portsIn(log, child)
  return { port: ports[0] ?? 0, ports, pids: processTree(/** @type {number} */ (child.pid)), stop, ended }
}

/**
 * Starts somebody else's server and waits until its port is open. Its workers count, and it ends with them.
 * @param {string} program
 * @param {string[]} words
 * @param {object} options
 * @param {number} options.port
 * @param {Record<string, string | undefined>} [options.env] beside what this process has; `undefined` takes one away
 * @param {string} [options.cwd]
 * @param {{ uid: number, gid: number }} [options.as]
 * @param {(pid: number) => boolean} [options.counts] which of its processes count
 * @returns {Promise<Running>}
 */
export async function startServer(program, words, { port, env = {}, cwd, as, counts = () => true }) {
  const folder = temporaryFolder()
  const log = join(folder.path, 'output')
  const output = openSync(log, 'a')
  const child = spawn(program, words, {
    stdio: ['ignore', output, output],
    env: { ...process.env, ...env },
    ...(cwd === undefined ? {} : { cwd }),
    ...as,
  })
  closeSync(output)
  const stop = stopping(child, folder.remove)
  for (let waited = 0; !(await isListening(port)); waited += 50) {
    if (hasEnded(child) || waited > 30_000) {
      const said = readFileSync(log, 'utf8').trim()
      await stop()
      throw new Error(`${program} does not listen: ${said}`)
    }
    await after(50)
  }
  // What it starts to check its files and load its caches is soon gone.
  await after(300)
  const pids = processTree(/** @type {number} */ (child.pid)).filter(counts)
  return { port, ports: [port], pids, stop }
}

/**
 * Runs a program to its end; what it says is thrown where it fails.
 * @param {string} program
 * @param {string[]} words
 * @param {import('node:child_process').ExecFileOptions} [options]
 * @returns {Promise<string>} its output, both streams
 */
export function run(program, words, options = {}) {
  return new Promise((resolve, reject) => {
    const child = execFile(program, words, options, (error, stdout, stderr) => {
      if (error) reject(new Error(`${program}: ${stderr || error.message}`))
      else resolve(`${stdout}${stderr}`)
    })
    const stop = stopping(child, async () => {})
    child.once('exit', stop)
  })
}

/**
 * @param {import('node:child_process').ChildProcess} child
 * @param {() => Promise<void>} then
 */
function stopping(child, then) {
  const ended = new Promise(resolve => child.once('exit', resolve).once('error', resolve))
  return atEnd(async () => {
    if (!hasEnded(child) && child.pid !== undefined) {
      child.kill('SIGTERM')
      const patience = setTimeout(() => child.kill('SIGKILL'), 15_000)
      await ended
      clearTimeout(patience)
    }
    await then()
  })
}

/** @param {import('node:child_process').ChildProcess} child */
function hasEnded({ exitCode, signalCode, pid }) {
  return exitCode !== null || signalCode !== null || pid === undefined
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
  for (let waited = 0; waited < 30_000 && !hasEnded(child); waited += 50) {
    const [line] = /^.*http:\/\/127\.0\.0\.1:\d+.*$/m.exec(readFileSync(log, 'utf8')) ?? []
    if (line !== undefined) {
      const addresses = line.matchAll(/http:\/\/127\.0\.0\.1:(\d+)/g)
      return [...new Set([...addresses].map(([, port]) => Number(port)))]
    }
    await after(50)
  }
  child.kill('SIGKILL')
  throw new Error(`no address in 30 s from ${child.spawnargs.join(' ')}: ${readFileSync(log, 'utf8')}`)
}

/** @param {number} milliseconds */
function after(milliseconds) {
  return new Promise(resolve => setTimeout(resolve, milliseconds))
}
