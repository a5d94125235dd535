// One piece of work at a time for each user: what would wait for a row's lock waits here, and holds no connection.

export interface OneAtATime {
  /**
   * Runs `work` when what came before it for this user has ended. Where that failed, it fails alike and is not run:
   * those that wait would else try a store that is away one after the other, each until its own time-out.
   */
  run<T>(userId: number, work: () => Promise<T>): Promise<T>
}

export function createOneAtATime(): OneAtATime {
  const last = new Map<number, Promise<unknown>>()
  return {
    run(userId, work) {
      const before = last.get(userId)
      const turn = before === undefined ? work() : before.then(work)
      last.set(userId, turn)
      const end = () => {
        if (last.get(userId) === turn) last.delete(userId)
      }
      turn.then(end, end)
      return turn
    },
  }
}
