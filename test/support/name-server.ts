// A real name server (dnsmasq) with the names that a test gives it, and programs that ask it alone.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { searchPath } from './servers.ts'

export interface NameServer {
  /** The command before a program's own that makes it ask this name server. */
  readonly command: readonly string[]
  /** Its addresses from now on; none is an answer that there is no such name. */
  setAddresses(name: string, addresses: readonly string[]): Promise<void>
  /** From now on it does not answer. */
  pause(): void
  resume(): void
  stop(): Promise<void>
}

/** Where a name server may be started: port 53 and a mount namespace take root. */
export function findNameServer(): string | undefined {
  const program = [...searchPath(), '/usr/sbin'].map(folder => join(folder, 'dnsmasq')).find(existsSync)
  const isAllowed = spawnSync('unshare', ['-m', 'true']).status === 0
  return isAllowed ? program : undefined
}

let started = 0

export async function startNameServer(program: string): Promise<NameServer> {
  const folder = await mkdtemp(join(tmpdir(), 'peage-names-'))
  const hosts = join(folder, 'hosts')
  await mkdir(hosts)
  started += 1
  const address = `127.77.${process.pid % 250}.${started}`
  const resolvConf = join(folder, 'resolv.conf')
  await writeFile(resolvConf, `nameserver ${address}\noptions timeout:1 attempts:1\n`)
  const child: ChildProcess = spawn(
    program,
    [
      '--keep-in-foreground',
      '--conf-file=/dev/null',
      '--no-resolv',
      '--no-hosts',
      '--no-negcache',
      '--local=/#/',
      '--local-ttl=0',
      '--bind-interfaces',
      `--listen-address=${address}`,
      `--hostsdir=${hosts}`,
      '--user=root',
      '--pid-file=',
    ],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { PATH: searchPath().join(delimiter), TEST_RUN: process.env.TEST_RUN },
    },
  )
  const ended = once(child, 'exit')
  return {
    command: ['unshare', '-m', 'sh', '-c', 'mount --bind "$0" /etc/resolv.conf && exec "$@"', resolvConf],
    async setAddresses(name, addresses) {
      const lines = addresses.map(one => `${one} ${name}\n`).join('')
      await writeFile(join(folder, name), lines)
      await rename(join(folder, name), join(hosts, name))
      // It watches the folder (inotify), and says nothing when it has read it.
      await sleep(50)
    },
    pause: () => child.kill('SIGSTOP'),
    resume: () => child.kill('SIGCONT'),
    async stop() {
      child.kill('SIGCONT')
      child.kill('SIGTERM')
      await ended
      await rm(folder, { recursive: true, force: true })
    },
  }
}
