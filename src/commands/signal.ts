// The signals that end a serving command.

/** Resolves with the first SIGTERM or SIGINT after the call; that signal does not end the process. */
export function firstSignal(): Promise<string> {
  return new Promise(resolve => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve(signal))
  })
}
