// What the drill of revocations makes of its answers: which came from the old state too late, and whose fault that was.
import { existsSync, readFileSync } from 'node:fs'

/**
 * @param {import('./main.mjs').Watch & { stoodStill: (replica: object) => { from: bigint, to: bigint }[] }} watch
 * @param {string} title
 * @param {import('./revocation.mjs').Asked[]} asked
 * @param {number} grace milliseconds
 */
export function judge({ say, expect, stoodStill }, title, asked, grace) {
  for (const name of new Set(asked.map(({ subject }) => subject))) {
    const mine = asked.filter(({ subject }) => subject === name)
    const old = mine.filter(({ isOld }) => isOld)
    const longest = Math.max(0, ...old.map(({ sent, committed }) => Number(sent - committed) / 1e6))
    const neither = mine.filter(({ isOld, isNew }) => !isOld && !isNew).length
    const judged = mine.filter(({ sent, committed }) => Number(sent - committed) / 1e6 >= grace)
    const late = judged.filter(({ isOld }) => isOld)
    const apart = late.map(one => ({ ...one, delay: delayOf(one, stoodStill(one.replica)) }))
    const excused = apart.filter(({ delay }) => delay > 20)
    if (excused.length > 0) {
      const figures = [...new Set(excused.map(({ delay }) => delay.toFixed(0)))].join(', ')
      say(`${name}: ${excused.length} told apart, their gateway's event loop stood still for ${figures} ms`)
    }
    expect(
      `${name}, ${title}: no request sent ${grace} ms after the commit is answered from the old state`,
      judged.length > 0 && late.length === excused.length && neither === 0,
      `${late.length - excused.length} of ${judged.length}, ${neither} neither way; the last of the old ${longest.toFixed(1)} ms after`,
    )
  }
}

/** The longest that a gateway stood still between a commit and an answer, in milliseconds. */
const delayOf = ({ committed, answered }, stalls) => longestStall(stalls, committed, answered)

/**
 * @param {{ from: bigint, to: bigint }[]} stalls
 * @param {bigint} begin @param {bigint} end
 * @returns {number} milliseconds of the longest that touches the time between
 */
export function longestStall(stalls, begin, end) {
  const within = stalls.filter(({ from, to }) => to > begin && from < end)
  return Math.max(0, ...within.map(({ from, to }) => Number(to - from) / 1e6))
}

/** When a process stood still, from what watch-loop.mjs wrote. */
export function stallsIn(file) {
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').trim().split('\n')
  return lines.map(line => {
    const [from, to] = line.split(' ').map(BigInt)
    return { from, to }
  })
}
