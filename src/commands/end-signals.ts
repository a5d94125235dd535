// SIGTERM and SIGINT: the first asks a gateway to drain, a further one to end at once.

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
