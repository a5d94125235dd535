// Works off a table of messages to send: leases due rows, attempts each, polls and wakes. Every replica runs one per table.
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'

export interface OutboxWorker {
  /** A row was stored, or room was made: polls now instead of at the next interval. */
  wake(): void
  /** Leases no more, aborts running attempts after `graceMs`, and resolves when the last one has ended. */
  stop(graceMs: number): Promise<void>
}

interface OutboxWork<Leased> {
  /**
   * Each leases due rows of one class, as many as there is room for, in one statement with `for update skip locked`
   * that counts the attempt and sets when the lease expires (`attempt-store.ts` names the columns). They are called
   * one after another, and what each returns is attempted at once. A lease must outlast the attempt's own deadline:
   * when it expires, another replica takes the row for one whose worker has died.
   * @param running attempts of this worker that have not ended
   */
  readonly lease: readonly ((running: number) => Promise<readonly Leased[]>)[]
  /** Whether it is worth polling again at once after a poll that has leased something. */
  hasRoom(running: number): boolean
  /**
   * One attempt, and the record of its outcome; `release` in the attempt store where `stopping` has aborted it. It
   * must end by itself: the worker knows no deadlines. Rejects with StorageError when the outcome cannot be recorded.
   */
  attempt(leased: Leased, stopping: AbortSignal): Promise<void>
  /** Called when the store fails, once until it works again; what is leased is leased again when its lease expires. */
  onError(error: unknown): void
}

/** The poll interval, and the minimum gap even when woken: attempts that end together cause one poll. */
const pollIntervalMs = 1_000
const minPollGapMs = 50

/** Polls until it is stopped, the first time after a second. */
export function startOutboxWorker<Leased>({
  lease,
  hasRoom,
  attempt,
  onError,
}: OutboxWork<Leased>): OutboxWorker {
  const stopping = new AbortController()
  // Every running attempt adds a listener and removes it, so any number is fine.
  setMaxListeners(0, stopping.signal)
  const running = new Set<Promise<void>>()
  let timer: NodeJS.Timeout | undefined = setTimeout(poll, pollIntervalMs).unref()
  let currentPoll: Promise<void> | undefined
  let isWoken = false
  /** The last poll leased some: more may be due as soon as there is room. */
  let mayHaveMore = false
  let isFailing = false
  let isStopped = false

  function poll(): void {
    isWoken = true
    if (currentPoll !== undefined || isStopped) return
    clearTimeout(timer)
    currentPoll = pollWhileWoken()
  }

  async function pollWhileWoken(): Promise<void> {
    while (isWoken && !isStopped) {
      isWoken = false
      try {
        mayHaveMore = (await leaseDue()) > 0
        if (mayHaveMore && hasRoom(running.size)) isWoken = true
        isFailing = false
      } catch (error) {
        onStoreError(error)
      }
      await sleep(minPollGapMs)
    }
    currentPoll = undefined
    if (!isStopped) timer = setTimeout(poll, pollIntervalMs).unref()
  }

  /** Reports once: a store that is down fails every running attempt. */
  function onStoreError(error: unknown): void {
    if (!isFailing) onError(error)
    isFailing = true
  }

  /** @returns how many were leased */
  async function leaseDue(): Promise<number> {
    let count = 0
    for (const leaseClass of lease) {
      if (isStopped) break
      const leased = await leaseClass(running.size)
      count += leased.length
      leased.forEach(start)
    }
    return count
  }

  function start(leased: Leased): void {
    const attempted = attempt(leased, stopping.signal)
      .catch(onStoreError)
      .finally(() => {
        running.delete(attempted)
        if (mayHaveMore) poll()
      })
    running.add(attempted)
  }

  return {
    wake: poll,
    async stop(graceMs) {
      isStopped = true
      clearTimeout(timer)
      const abortTimer = setTimeout(() => stopping.abort(), graceMs)
      // A running poll may still lease rows.
      await currentPoll
      await Promise.all(running)
      clearTimeout(abortTimer)
    },
  }
}
