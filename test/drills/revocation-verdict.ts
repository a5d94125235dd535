// Judges the answers of the drill of revocations: which came from the old state too late, and whether a stall explains it.
import type { Replica } from './replicas.ts'
import { longestStall, type Stalls } from './stalls.ts'
import type { Watch } from './watch.ts'

/** An answer to a request after a revocation. Moments are nanoseconds of the clock that all processes share. */
export interface Asked {
  readonly subject: string
  readonly replica: Replica
  readonly isOld: boolean
  readonly isNew: boolean
  readonly sent: bigint
  readonly answered: bigint
  /** When the revocation was committed. */
  readonly committed: bigint
}

/** @param grace milliseconds after the commit within which the old state is allowed */
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
      say(`${name}: ${excuses.length} excused, their gateway's event loop stood still for ${figures} ms`)
    }
    expect(
      `${name}, ${title}: no request sent ${grace} ms after the commit is answered from the old state`,
      judged.length > 0 && late.length === excuses.length && neither === 0,
      `${late.length - excuses.length} of ${judged.length}, ${neither} neither way; the last of the old ${longest.toFixed(1)} ms after`,
    )
  }
}
