// A real name server (dnsmasq) for programs that a test starts. The test sets the addresses of the names.
import { spawn, spawnSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { atEnd } from './cleanup.ts'
import { findProgram } from './servers.ts'

export interface NameServer {
  /** The start of a command line that runs a program with this name server. Append the program and its arguments. */
  readonly command: readonly string[]
  /** Sets the addresses of a name. Without addresses the name does not exist. */
  setAddresses(name: string, addresses: readonly string[]): Promise<void>
  /** Pauses the server, which then sends no DNS answers. */
  pause(): void
  resume(): void
  /** For the next `ms` milliseconds, the server responds to every query with SERVFAIL. */
  fail(ms: number): Promise<void>
  stop(): Promise<void>
}

/**
 * Returns the path of dnsmasq. Returns `undefined` if dnsmasq is not installed, or if this process cannot create a
 * mount namespace. Port 53 and the mount namespace require root.
 */
export function findNameServer(): string | undefined {
  const isAllowed = spawnSync('unshare', ['-m', 'true']).status === 0
  return isAllowed ? findProgram('dnsmasq') : undefined
}

interface NameServerOptions {
  /** Names for which the server sends no DNS answer. */
  readonly silent?: readonly string[]
  /** The options in `resolv.conf`, for example `timeout:1 attempts:1`. */
  readonly resolver?: string
}

/** Starts a name server that stops at the end of the run. @throws Error if dnsmasq or root rights are missing */
export async function startOwnNameServer(options: NameServerOptions = {}): Promise<NameServer> {
  const program = findNameServer()
  if (program === undefined)
    throw new Error(
      'dnsmasq or root rights are missing. Run `apt-get install dnsmasq-base` and start as root.',
    )
  const server = await startNameServer(program, options)
  return { ...server, stop: atEnd(() => server.stop()) }
}

let started = 0

export async function startNameServer(
  program: string,
  { silent = [], resolver = 'timeout:1 attempts:1' }: NameServerOptions = {},
): Promise<NameServer> {
  const folder = await mkdtemp(join(tmpdir(), 'peage-names-'))
  const hosts = join(folder, 'hosts')
  await mkdir(hosts)
  started += 1
  const number = `${process.pid % 250}.${started}`
  const address = `127.77.${number}`
  const silentAddress = `127.78.${number}`
  const resolvConf = join(folder, 'resolv.conf')
  await writeFile(resolvConf, `nameserver ${address}\noptions ${resolver}\n`)
  const silence = silent.length === 0 ? undefined : createSocket('udp4').bind(53, silentAddress)
  const launch = () => {
    const child = spawn(
      program,
      [
        '--keep-in-foreground',
        '--conf-file=/dev/null',
        '--no-resolv',
        '--no-hosts',
        '--no-negcache',
        '--local=/#/',
        '--local-ttl=0',
        ...silent.map(name => `--server=/${name}/${silentAddress}`),
        '--bind-interfaces',
        `--listen-address=${address}`,
        `--hostsdir=${hosts}`,
        '--user=root',
        '--pid-file=',
      ],
      {
        stdio: ['ignore', 'ignore', 'pipe'],
        env: { PATH: process.env.PATH, TEST_RUN: process.env.TEST_RUN },
      },
    )
    return { child, ended: once(child, 'exit') }
  }
  let running = launch()
  const end = async () => {
    running.child.kill('SIGCONT')
    running.child.kill('SIGTERM')
    await running.ended
  }
  return {
    command: ['unshare', '-m', 'sh', '-c', 'mount --bind "$0" /etc/resolv.conf && exec "$@"', resolvConf],
    async setAddresses(name, addresses) {
      const lines = addresses.map(one => `${one} ${name}\n`).join('')
      await writeFile(join(folder, name), lines)
      await rename(join(folder, name), join(hosts, name))
      // dnsmasq watches the folder with inotify. It does not report when it has read a change, so this function waits.
      await sleep(50)
    },
    pause: () => running.child.kill('SIGSTOP'),
    resume: () => running.child.kill('SIGCONT'),
    async fail(ms) {
      await end()
      const failing = createSocket('udp4').bind(53, address)
      failing.on('message', (query, peer) => {
        // These flags mark a response with recursion available and RCODE 2, which is SERVFAIL (RFC 1035 §4.1.1).
        query.writeUInt16BE(0x8182, 2)
        failing.send(query, peer.port, peer.address)
      })
      await sleep(ms)
      failing.close()
      await once(failing, 'close')
      running = launch()
    },
    async stop() {
      await end()
      silence?.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
