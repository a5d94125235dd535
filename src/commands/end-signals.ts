// SIGTERM and SIGINT: the first asks a gateway to drain, a further one to end at once. The end of npx counts as a signal.
import type { Io } from './io.ts'

/** One Ctrl-C comes twice under npm: from the terminal, and from npm itself. */
const sameInterruptMs = 250

/**
 * Hears both signals from now on, for as long as the process lives: by default a second one, which may come before the
 * first is answered, would end it without a drain.
 * @param endNow is called at each signal after the first
 * @returns the first one's name
 */
export function onEndSignals(endNow: () => void): Promise<string> {
  return new Promise(resolve => {
    let firstAtMs: number | undefined
    const hear = (signal: string) => {
      if (firstAtMs === undefined) {
        firstAtMs = performance.now()
        resolve(signal)
      } else if (signal === 'SIGTERM' || performance.now() - firstAtMs >= sameInterruptMs) endNow()
    }
    process.on('SIGTERM', hear).on('SIGINT', hear)
  })
}

const parentPollMs = 500

/**
 * A signal to `npx peage start` ends npx and the shell that npx started, and does not reach the gateway. Without npx the end
 * of the parent means nothing: a gateway may outlive the shell that started it.
 * @param parentOf returns the current parent's process id, which changes when the parent ends
 * @returns resolves when npx has ended; never without npx
 */
export function onNpxEnded(env: Io['env'], parentOf: () => number): Promise<string> {
  return new Promise(resolve => {
    if (env.npm_lifecycle_event !== 'npx') return
    const parent = parentOf()
    const poll = setInterval(() => {
      if (parentOf() === parent) return
      clearInterval(poll)
      resolve('npx ended')
    }, parentPollMs).unref()
  })
}
