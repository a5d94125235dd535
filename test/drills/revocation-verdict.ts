// Checks the responses of the drill `revocation`. Later than `grace` milliseconds after a revocation, no response may
// show the old state, unless the gateway was blocked.
import type { Replica } from './replicas.ts'
import { longestStall, type Stalls } from './stalls.ts'
import type { Watch } from './watch.ts'

/** A response after a revocation. Times are nanoseconds of the system's monotonic clock. */
export interface Asked {
  readonly subject: string
  readonly replica: Replica
  readonly isOld: boolean
  readonly isNew: boolean
  readonly sent: bigint
  readonly answered: bigint
  /** The time when the revocation was committed. */
  readonly committed: bigint
}

/** @param grace the milliseconds after the commit during which responses may still show the old state */
export function judge(
  { say, expect }: Watch,
  stalls: Stalls,
  title: string,
  asked: readonly Asked[],
  grace: number,
): void {
  const ageOf = ({ sent, committed }: Asked) => Number(sent - committed) / 1e6
  for (const name of new Set(asked.map(({ subject }) => subject))) {
    const mine = asked.filter(({ subject }) => subject === name)
    const longest = Math.max(0, ...mine.filter(({ isOld }) => isOld).map(ageOf))
    const neither = mine.filter(({ isOld, isNew }) => !isOld && !isNew).length
    const judged = mine.filter(one => ageOf(one) >= grace)
    const late = judged.filter(({ isOld }) => isOld)
    const excuses = late
      .map(({ replica, committed, answered }) => longestStall(stalls.of(replica), committed, answered))
      .filter(stall => stall > 20)
    if (excuses.length > 0) {
      const figures = [...new Set(excuses.map(stall => stall.toFixed(0)))].join(', ')
      say(
        `${name}: ${excuses.length} late responses do not count, because the gateway's event loop was blocked for ${figures} ms`,
      )
    }
    expect(
      `${name}, ${title}: no response shows the old state ${grace} ms after the commit`,
      judged.length > 0 && late.length === excuses.length && neither === 0,
      `${late.length - excuses.length} of ${judged.length} show the old state, ${neither} have another status code; last old state after ${longest.toFixed(1)} ms`,
    )
  }
}
