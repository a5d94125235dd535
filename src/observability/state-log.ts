// Logs when a target or store goes down or comes up again, with at most one line in 10 s. If the state changes more
// often, the latest state is logged after this time.

const intervalMs = 10_000

export interface StateLog {
  /** @param reason why the state is down */
  report(isUp: boolean, reason?: string): void
  stop(): void
}

interface Options {
  write(isUp: boolean, reason: string | undefined): void
  /** A monotonic clock, for example `performance.now()`. */
  now(): number
}

/** Logs the state if it differs from the last state that was logged. At the start, the state counts as up. */
export function createStateLog({ write, now }: Options): StateLog {
  let current: { isUp: boolean; reason: string | undefined } = { isUp: true, reason: undefined }
  let written = true
  let writtenAtMs = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | undefined
  let isStopped = false

  function writeIfChanged(): void {
    timer = undefined
    if (current.isUp === written) return
    written = current.isUp
    writtenAtMs = now()
    write(current.isUp, current.reason)
  }

  return {
    report(isUp, reason) {
      current = { isUp, reason }
      if (isUp === written || timer !== undefined || isStopped) return
      const leftMs = writtenAtMs + intervalMs - now()
      if (leftMs <= 0) writeIfChanged()
      else timer = setTimeout(writeIfChanged, Math.ceil(leftMs)).unref()
    },
    stop() {
      isStopped = true
      clearTimeout(timer)
    },
  }
}
