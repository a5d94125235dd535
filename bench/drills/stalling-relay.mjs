// A relay that can stop passing bytes on, and go on.
import { startRelay } from './relay.mjs'

/** @param {string} target a server's URL */
export async function startStallingRelay(target) {
  const { child, url, stop } = await startRelay('serve-stalling-relay.mjs', target)
  return {
    url,
    /** Nothing passes any more, either way. */
    stall: () => child.send('stall'),
    /** What was held back passes, and everything from then on. */
    flow: () => child.send('flow'),
    stop,
  }
}
