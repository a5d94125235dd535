// A relay in a network namespace of its own, whose packets can be dropped: nothing is answered or reset, as where a cable is pulled.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { atEnd } from '../cleanup.mjs'
import { temporaryFolder } from '../processes.mjs'

const program = fileURLToPath(new URL('serve-pipe.mjs', import.meta.url))

/**
 * @param {string} target a server's URL
 * @throws Error where this is not root, or there is no `ip`, `nsenter` or `unshare`
 */
export async function startDroppingRelay(target) {
  const { hostname, port } = new URL(target)
  const folder = temporaryFolder()
  const socket = join(folder.path, 'relay')
  // A name of at most 15 characters, and a network of four addresses.
  const link = `peage${process.pid}`.slice(0, 13)
  const network = `10.213.${process.pid % 250}`
  const [here, there] = [`${network}.1`, `${network}.2`]
  const holder = spawn('unshare', ['-n', 'sleep', 'infinity'], { stdio: 'ignore' })
  const inside = ['nsenter', '-t', String(holder.pid), '-n']
  /** @type {import('node:child_process').ChildProcess[]} */
  const children = [holder]
  const stop = atEnd(() => {
    // The link ends with the namespace.
    for (const child of children) child.kill('SIGKILL')
    folder.remove()
  })
  await once(holder, 'spawn')
  const ip = (...words) => run('ip', ...words)
  const ipInside = (...words) => run(...inside, 'ip', ...words)
  await untilElsewhere(holder.pid)
  ip('link', 'add', 'name', `${link}a`, 'type', 'veth', 'peer', 'name', `${link}b`)
  ip('link', 'set', `${link}b`, 'netns', String(holder.pid))
  ip('address', 'add', `${here}/30`, 'dev', `${link}a`)
  ip('link', 'set', `${link}a`, 'up')
  ipInside('address', 'add', `${there}/30`, 'dev', `${link}b`)
  ipInside('link', 'set', `${link}b`, 'up')

  async function relay(from, to, before = []) {
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
    /** Nothing comes back from there any more, not even that something has come. */
    stall: () => ipInside('route', 'add', 'blackhole', `${here}/32`),
    /** What was sent meanwhile is sent again, as TCP does. */
    flow: () => ipInside('route', 'del', 'blackhole', `${here}/32`),
    stop,
  }
}

function run(command = '', ...words) {
  const { status, stderr, error } = spawnSync(command, words, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} ${words.join(' ')}: ${error?.message ?? stderr}`)
}

/** `unshare` is a process of this namespace first. */
async function untilElsewhere(pid) {
  const namespaceOf = of => spawnSync('readlink', [`/proc/${of}/ns/net`], { encoding: 'utf8' }).stdout
  for (let tries = 0; namespaceOf(pid) === namespaceOf('self'); tries += 1) {
    if (tries > 100) throw new Error('no network namespace: this needs root')
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}
