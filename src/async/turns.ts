// Runs one task at a time per key, and spares those that wait a run whose outcome is known by then.

export interface Turns {
  /**
   * Runs `work` after the work for this key before it. Where that resolved to `gone`, or failed, everybody who waited
   * when it began has the same outcome and does not run: a thousand that want one thing cost a few runs, and not one
   * each of a store that is away.
   */
  run<T>(key: string, work: () => Promise<T | 'gone'>): Promise<T | 'gone'>
}

type Signal = { readonly is: 'turn' } | { readonly is: 'gone' } | { readonly is: 'failed'; error: unknown }

export function createTurns(): Turns {
  /** Those that wait, by the keys whose work is under way. */
  const lines = new Map<string, ((signal: Signal) => void)[]>()

  async function runTurn<T>(
    key: string,
    line: ((signal: Signal) => void)[],
    work: () => Promise<T | 'gone'>,
  ): Promise<T | 'gone'> {
    const waitedAtStart = line.length
    let shared: Signal | undefined
    try {
      const result = await work()
      if (result === 'gone') shared = { is: 'gone' }
      return result
    } catch (error) {
      shared = { is: 'failed', error }
      throw error
    } finally {
      if (shared !== undefined) for (const tell of line.splice(0, waitedAtStart)) tell(shared)
      const next = line.shift()
      if (next === undefined) lines.delete(key)
      else next({ is: 'turn' })
    }
  }

  return {
    async run(key, work) {
      const line = lines.get(key)
      if (line === undefined) {
        const own: ((signal: Signal) => void)[] = []
        lines.set(key, own)
        return runTurn(key, own, work)
      }
      const signal = await new Promise<Signal>(resolve => line.push(resolve))
      if (signal.is === 'failed') throw signal.error
      return signal.is === 'gone' ? 'gone' : runTurn(key, line, work)
    },
  }
}
