// Groups calls: those made while a batch is under way go together in the next.

interface Options<Item, Result> {
  /** Of one batch; more wait for the batch after it. */
  maxItems: number
  /** Whether both may be in one batch; where not, the later one opens the next. */
  areAlike?(first: Item, later: Item): boolean
  /** A batch that takes longer than this does not hold up the next: the two then run side by side. */
  maxWaitMs: number
  /** Returns or resolves with one result for each item, in their order; fails for the items of this batch alone. */
  run(items: readonly [Item, ...Item[]]): Promise<readonly (Result | PromiseLike<Result>)[]>
}

interface Waiting<Item, Result> {
  readonly item: Item
  resolve(result: Result | PromiseLike<Result>): void
  reject(reason: unknown): void
}

/**
 * A call that finds no batch under way starts one: at once if the last batch had one call, else when the event loop has read
 * every ready socket, together with the calls that those bring. Calls that wait for a batch start theirs likewise at its end.
 */
export function createBatches<Item, Result>(options: Options<Item, Result>) {
  const { maxItems, maxWaitMs, areAlike = () => true, run } = options
  let waiting: Waiting<Item, Result>[] = []
  /** The batch that the next one waits for. */
  let underWay: object | undefined
  let overdue: NodeJS.Timeout | undefined
  let wasOfSeveral = false

  function start(): void {
    clearTimeout(overdue)
    overdue = undefined
    const [first, ...later] = waiting
    if (first === undefined) return
    const unlike = later.findIndex(({ item }) => !areAlike(first.item, item))
    const joining = later.slice(0, Math.min(unlike === -1 ? later.length : unlike, maxItems - 1))
    waiting = later.slice(joining.length)
    wasOfSeveral = joining.length > 0
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
      else if (!wasOfSeveral) start()
      else if (waiting.length === 1) setImmediate(start)
    })
}
