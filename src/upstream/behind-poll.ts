// What has to be done once all that has arrived by now is read: in one go, and without a timer for each.

/** @returns takes what `act` is to be called with */
export function createBehindPoll<T>(act: (item: T) => void): (item: T) => void {
  let waiting: T[] = []
  const actAll = () => {
    const items = waiting
    waiting = []
    for (const item of items) act(item)
  }
  return item => {
    if (waiting.length === 0) setImmediate(actAll)
    waiting.push(item)
  }
}
