// A relay in its own network namespace. It can drop all packets without a TCP reset, as if a cable was unplugged.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { atEnd } from '../support/cleanup.ts'
import { temporaryFolder } from '../support/processes.ts'
import type { StallableRelay } from './relay.ts'

const program = fileURLToPath(new URL('./serve-pipe.js', import.meta.url))

/**
 * @param target the URL of a server
 * @throws Error if the process is not root, or if `ip`, `nsenter` or `unshare` is missing
 */
export async function startDroppingRelay(target: string): Promise<StallableRelay> {
  const { hostname, port } = new URL(target)
  const folder = temporaryFolder()
  const socket = join(folder.path, 'relay')
  // An interface name has at most 15 characters.
  const link = `peage${process.pid}`.slice(0, 13)
  const network = `10.213.${process.pid % 250}`
  const [here, there] = [`${network}.1`, `${network}.2`]
  const holder = spawn('unshare', ['-n', 'sleep', 'infinity'], { stdio: 'ignore' })
  const namespace = String(holder.pid)
  const inside = ['nsenter', '-t', namespace, '-n']

  const children: ChildProcess[] = [holder]
  const stop = atEnd(async () => {
    // The kernel removes the link together with the namespace.
    for (const child of children) child.kill('SIGKILL')
    await folder.remove()
  })
  await once(holder, 'spawn')
  const ip = (words: string) => run(['ip', ...words.split(' ')])
  const ipInside = (words: string) => run([...inside, 'ip', ...words.split(' ')])
  await untilElsewhere(namespace)
  ip(`link add name ${link}a type veth peer name ${link}b`)
  ip(`link set ${link}b netns ${namespace}`)
  ip(`address add ${here}/30 dev ${link}a`)
  ip(`link set ${link}a up`)
  ipInside(`address add ${there}/30 dev ${link}b`)
  ipInside(`link set ${link}b up`)

  async function relay(from: string, to: string, before: readonly string[] = []): Promise<unknown> {
    const [command = '', ...words] = [...before, process.execPath, program, from, to]
    const child = spawn(command, words, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    children.push(child)
    return (await once(child, 'message'))[0]
  }
  await relay(socket, `${hostname === 'localhost' ? '127.0.0.1' : hostname}:${port || 5432}`)
  const url = new URL(target)
  url.hostname = there
  url.port = String(await relay(`${there}:0`, socket, inside))
  return {
    url: url.href,
    // This route also drops the acknowledgments of received bytes.
    stall: () => ipInside(`route add blackhole ${here}/32`),
    // When the route is removed, TCP sends the lost bytes again.
    flow: () => ipInside(`route del blackhole ${here}/32`),
    stop,
  }
}

function run([command = '', ...words]: readonly string[]): void {
  execFileSync(command, words, { stdio: ['ignore', 'ignore', 'pipe'] })
}

/** Waits until `unshare` has moved the process to its own network namespace. */
async function untilElsewhere(pid: string): Promise<void> {
  const namespaceOf = (of: string) => readlinkSync(`/proc/${of}/ns/net`)
  for (let tries = 0; namespaceOf(pid) === namespaceOf('self'); tries += 1) {
    if (tries > 100) throw new Error('The network namespace could not be created. Start as root.')
    await sleep(20)
  }
}
