// Groups calls into batches. Calls made while a batch is running go together into the next batch.

interface Options<Item, Result> {
  /** Maximum number of items in a batch. Further items wait for the next batch. */
  maxItems: number
  /** Whether the two items may be in the same batch. If not, the later item starts the next batch. */
  areAlike?(first: Item, later: Item): boolean
  /** If a batch takes longer than this, the next batch starts too, and both run at the same time. */
  maxWaitMs: number
  /**
   * Runs one batch. Returns one result per item, in the order of the items. If the run fails, only the calls of this
   * batch fail.
   */
  run(items: readonly [Item, ...Item[]]): Promise<readonly (Result | PromiseLike<Result>)[]>
}

interface Waiting<Item, Result> {
  readonly item: Item
  resolve(result: Result | PromiseLike<Result>): void
  reject(reason: unknown): void
}

/**
 * Creates a function that adds a call to a batch:
 *
 * - If a batch is running, the call waits. When the running batch ends, the waiting calls form the next batch.
 * - If no batch is running and calls are rare, the call runs immediately, as a batch with one call. Calls are rare if
 *   the last batch had only one call and started in an earlier turn of the event loop.
 * - Otherwise, the call opens a new batch, which later calls can join.
 *
 * Except when calls are rare, the event loop reads every ready socket before a batch starts. So calls from these
 * sockets can join the batch. The embedded database needs this, because it blocks the event loop until the batch ends.
 */
export function createBatches<Item, Result>(options: Options<Item, Result>) {
  const { maxItems, maxWaitMs, areAlike = () => true, run } = options
  let waiting: Waiting<Item, Result>[] = []
  /** The batch that is running. The next batch waits for it. */
  let underWay: object | undefined
  let overdue: NodeJS.Timeout | undefined
  let wasOfSeveral = false
  /** Whether a batch has started in this turn of the event loop. */
  let hasStarted = false

  function start(): void {
    clearTimeout(overdue)
    overdue = undefined
    const [first, ...later] = waiting
    if (first === undefined) return
    const unlike = later.findIndex(({ item }) => !areAlike(first.item, item))
    const joining = later.slice(0, Math.min(unlike === -1 ? later.length : unlike, maxItems - 1))
    waiting = later.slice(joining.length)
    wasOfSeveral = joining.length > 0
    hasStarted = true
    setImmediate(() => {
      hasStarted = false
    })
    void settle(first, joining)
    if (waiting.length > 0) startWhenOverdue()
  }

  async function settle(
    first: Waiting<Item, Result>,
    joining: readonly Waiting<Item, Result>[],
  ): Promise<void> {
    underWay = first
    const batch = [first, ...joining]
    try {
      const results = await run([first.item, ...joining.map(({ item }) => item)])
      for (const [index, result] of results.entries()) batch[index]?.resolve(result)
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
    if (underWay !== first) return
    clearTimeout(overdue)
    overdue = undefined
    if (waiting.length === 0) underWay = undefined
    else setImmediate(start)
  }

  function startWhenOverdue(): void {
    overdue ??= setTimeout(start, maxWaitMs)
  }

  return (item: Item): Promise<Result> =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      if (underWay !== undefined) startWhenOverdue()
      else if (!wasOfSeveral && !hasStarted) start()
      else if (waiting.length === 1) setImmediate(start)
    })
}
