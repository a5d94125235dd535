// Sends the messages in an outbox table. The worker leases the rows that are due, and attempts to send each of them. It
// polls the table regularly, and also when a caller wakes it. Every replica has one worker per table.
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'

export interface OutboxWorker {
  /** Polls now. Call this when a row was stored, or when there is room for another row. */
  wake(): void
  /** Stops leasing, aborts running attempts after `graceMs`, and resolves when the last attempt has ended. */
  stop(graceMs: number): Promise<void>
}

interface OutboxWork<Leased> {
  /**
   * Functions that lease due rows, one function for each class of rows. A function leases at most as many rows as the
   * worker has room for. It uses one statement with `for update skip locked`. This statement counts the attempt and
   * sets the expiry of the lease (see the columns in `attempt-store.ts`). The worker calls the functions one after
   * another, and attempts each returned row immediately. A lease must last longer than the time limit of an attempt.
   * Otherwise, another replica could lease the row during the attempt.
   * @param running the number of attempts of this worker that have not ended
   */
  readonly lease: readonly ((running: number) => Promise<readonly Leased[]>)[]
  /**
   * Returns whether the worker has room for more rows. If it has room and the last poll leased rows, the worker polls
   * again without waiting for the regular interval.
   */
  hasRoom(running: number): boolean
  /**
   * Makes one attempt and stores its outcome. If `stopping` aborts the attempt, no outcome is stored, and this function
   * calls `release` of the attempt store. The function must limit the time of the attempt, because the worker does not.
   * Rejects with StorageError if the outcome cannot be stored.
   */
  attempt(leased: Leased, stopping: AbortSignal): Promise<void>
  /**
   * Called at the first error of the store, and then not again until a poll succeeds. Rows whose outcome cannot be
   * stored are leased again after their leases expire.
   */
  onError(error: unknown): void
}

/**
 * `pollIntervalMs` is the interval between regular polls. `minPollGapMs` is the minimum time between any two polls,
 * even if the worker is woken. So several attempts that end together cause only one poll.
 */
const pollIntervalMs = 1_000
const minPollGapMs = 50

/** Polls until it is stopped. The first poll is after one second. */
export function startOutboxWorker<Leased>({
  lease,
  hasRoom,
  attempt,
  onError,
}: OutboxWork<Leased>): OutboxWorker {
  const stopping = new AbortController()
  // Every running attempt adds a listener and removes it, so many listeners are normal.
  setMaxListeners(0, stopping.signal)
  const running = new Set<Promise<void>>()
  let timer: NodeJS.Timeout | undefined = setTimeout(poll, pollIntervalMs).unref()
  let currentPoll: Promise<void> | undefined
  let isWoken = false
  /** Whether the last poll leased rows. If so, more rows may be due when there is room. */
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

  /** Reports only the first error, because every running attempt fails while the store is down. */
  function onStoreError(error: unknown): void {
    if (!isFailing) onError(error)
    isFailing = true
  }

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
      // Waits for a running poll first, because the poll may still lease rows.
      await currentPoll
      await Promise.all(running)
      clearTimeout(abortTimer)
    },
  }
}
