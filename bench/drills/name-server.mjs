// A real name server (dnsmasq) on an address of its own, and the command that runs a program under it.
import { spawn, spawnSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { atEnd } from '../cleanup.mjs'
import { temporaryFolder } from '../processes.mjs'

const flags = [
  '--keep-in-foreground',
  '--conf-file=/dev/null',
  '--no-resolv',
  '--no-hosts',
  '--no-negcache',
  '--local=/#/',
  '--local-ttl=0',
  '--bind-interfaces',
  '--user=root',
  '--pid-file=',
]

let servers = 0

/**
 * Port 53 and a mount namespace take root.
 * @param {{ silent?: readonly string[], resolverOptions?: string }} [settings] names that are never answered for, and
 * the resolver's `options`
 */
export function startNameServer({ silent = [], resolverOptions = 'timeout:1 attempts:1' } = {}) {
  const program = ['/usr/sbin/dnsmasq', '/usr/bin/dnsmasq', '/usr/local/sbin/dnsmasq'].find(existsSync)
  if (program === undefined) throw new Error('no dnsmasq: install dnsmasq-base')
  if (spawnSync('unshare', ['-m', 'true']).status !== 0)
    throw new Error('needs root, for port 53 and a mount namespace')
  const { path: folder, remove } = temporaryFolder()
  const hosts = join(folder, 'hosts')
  mkdirSync(hosts)
  servers += 1
  const address = `127.78.${process.pid % 250}.${2 * servers}`
  const silentAddress = `127.78.${process.pid % 250}.${2 * servers + 1}`
  const resolvConf = join(folder, 'resolv.conf')
  writeFileSync(resolvConf, `nameserver ${address}\noptions ${resolverOptions}\n`)
  // It receives what dnsmasq passes on, and says nothing.
  const silence = createSocket('udp4').bind(53, silentAddress)
  const passedOn = silent.map(name => `--server=/${name}/${silentAddress}`)
  const start = () =>
    spawn(program, [...flags, ...passedOn, `--listen-address=${address}`, `--hostsdir=${hosts}`], {
      stdio: 'ignore',
    })
  let child = start()
  const stop = atEnd(() => {
    child.kill('SIGKILL')
    silence.close()
    remove()
  })
  return {
    command: ['unshare', '-m', 'sh', '-c', 'mount --bind "$0" /etc/resolv.conf && exec "$@"', resolvConf],
    /** @param {string} name @param {readonly string[]} list */
    set(name, list) {
      writeFileSync(join(folder, name), list.map(one => `${one} ${name}\n`).join(''))
      renameSync(join(folder, name), join(hosts, name))
    },
    pause: () => child.kill('SIGSTOP'),
    resume: () => child.kill('SIGCONT'),
    /** Every question is answered SERVFAIL for so long. @param {number} ms */
    async fail(ms) {
      const ended = new Promise(resolve => child.once('exit', resolve))
      child.kill('SIGKILL')
      await ended
      const failing = createSocket('udp4').bind(53, address)
      failing.on('message', (query, peer) => {
        // RFC 1035 §4.1.1: an answer, recursion available, RCODE 2.
        query.writeUInt16BE(0x8182, 2)
        failing.send(query, peer.port, peer.address)
      })
      await sleep(ms)
      await new Promise(resolve => failing.close(() => resolve(undefined)))
      child = start()
    },
    stop,
  }
}
