// The relay in front of a server, a process of its own: what a drill is busy with must not slow what passes through it.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** @param {string} target a server's URL */
export async function startStallingRelay(target) {
  const child = fork(fileURLToPath(new URL('serve-stalling-relay.mjs', import.meta.url)), [target])
  const [port] = await once(child, 'message')
  const url = new URL(target)
  url.hostname = '127.0.0.1'
  url.port = String(port)
  return {
    url: url.href,
    /** Nothing passes any more, either way. */
    stall: () => child.send('stall'),
    /** What was held back passes, and everything from then on. */
    flow: () => child.send('flow'),
    stop: () => child.kill('SIGKILL'),
  }
}
