// A relay in front of a server, a process of its own: what a drill is busy with must not slow what passes through it.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/**
 * @param {string} program beside this one
 * @param {string} target a server's URL
 */
export async function startRelay(program, target) {
  const child = fork(fileURLToPath(new URL(program, import.meta.url)), [target])
  const [port] = await once(child, 'message')
  const url = new URL(target)
  url.hostname = '127.0.0.1'
  url.port = String(port)
  return { child, url: url.href, stop: () => child.kill('SIGKILL') }
}
