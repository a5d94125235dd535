// Groups calls: those made while a batch is under way go together in the next.

interface Options<Item, Result> {
  /** Of one batch; more wait for the batch after it. */
  maxItems: number
  /** Whether both may be in one batch; where not, the later one opens the next. */
  areAlike?(first: Item, later: Item): boolean
  /** A batch that takes longer than this does not hold up the next: the two then run side by side. */
  maxWaitMs: number
  /** Returns or resolves with one result for each item, in their order; fails for the items of this batch alone. */
  run(items: readonly Item[]): Promise<readonly (Result | PromiseLike<Result>)[]>
}

interface Waiting<Item, Result> {
  readonly item: Item
  resolve(result: Result | PromiseLike<Result>): void
  reject(reason: unknown): void
}

/** A call that finds no batch under way starts one at the end of the current turn, with those made in the same turn. */
export function createBatches<Item, Result>(options: Options<Item, Result>) {
  const { maxItems, maxWaitMs, areAlike = () => true, run } = options
  let waiting: Waiting<Item, Result>[] = []
  /** The batch that the next one waits for. */
  let underWay: object | undefined
  let patience: NodeJS.Timeout | undefined

  function start(): void {
    clearTimeout(patience)
    patience = undefined
    const [first] = waiting
    const unlike = waiting.findIndex(({ item }) => first !== undefined && !areAlike(first.item, item))
    const size = Math.min(unlike === -1 ? waiting.length : unlike, maxItems)
    const batch = waiting.slice(0, size)
    waiting = waiting.slice(size)
    underWay = batch
    void settle(batch)
    if (waiting.length > 0) waitNoLonger()
  }

  async function settle(batch: Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await run(batch.map(({ item }) => item))
      for (const [index, result] of results.entries()) batch[index]?.resolve(result)
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
    if (underWay !== batch) return
    underWay = undefined
    if (waiting.length > 0) start()
  }

  function waitNoLonger(): void {
    patience ??= setTimeout(start, maxWaitMs)
  }

  return (item: Item): Promise<Result> =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      if (underWay !== undefined) waitNoLonger()
      else if (waiting.length === 1) queueMicrotask(start)
    })
}
