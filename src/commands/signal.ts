// The signals that end a command which serves.

/** Resolves with the name of the first SIGTERM or SIGINT after the call; that one does not end the process. */
export function firstSignal(): Promise<string> {
  return new Promise(resolve => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve(signal))
  })
}
