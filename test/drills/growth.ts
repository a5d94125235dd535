// Looks at figures at even intervals, and judges how much higher each is at the end than at the beginning.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Watch } from './watch.ts'

export interface Look<Figure extends string> {
  /** When, as a part of the whole time: 0 to 1. */
  readonly at: number
  readonly figures: Readonly<Record<Figure, number>>
}

export interface Bar {
  readonly name: string
  /** How much higher the figure may be at the end, by the line through all looks. */
  readonly most: number
}

const intervals = 12

export async function lookRepeatedly<Figure extends string>(
  durationMs: number,
  look: () => Promise<Record<Figure, number>>,
): Promise<Look<Figure>[]> {
  const looks: Look<Figure>[] = []
  const begun = performance.now()
  for (let index = 0; index <= intervals; index += 1) {
    await sleep(Math.max(0, begun + (index * durationMs) / intervals - performance.now()))
    const at = (performance.now() - begun) / durationMs
    looks.push({ at, figures: await look() })
  }
  return looks
}

/** @param title put before the name of each bar */
export function expectFlat<Figure extends string>(
  { expect }: Watch,
  title: string,
  bars: Readonly<Record<Figure, Bar>>,
  looks: readonly Look<Figure>[],
  durationMs: number,
): void {
  for (const figure of Object.keys(bars) as Figure[]) {
    const { name, most } = bars[figure]
    const values = looks.map(({ figures }) => figures[figure])
    const slope = slopeOf(looks.map(({ at, figures }) => ({ x: at, y: figures[figure] })))
    expect(
      `${title}${name}: the slope is flat, less than ${most} more in ${durationMs / 1_000} s`,
      slope < most,
      `${slope.toFixed(2)}; from ${Math.min(...values).toFixed(1)} to ${Math.max(...values).toFixed(1)}`,
    )
  }
}

/** Of the line that fits best (least squares). */
function slopeOf(points: readonly { x: number; y: number }[]): number {
  const meanX = points.reduce((sum, { x }) => sum + x, 0) / points.length
  const meanY = points.reduce((sum, { y }) => sum + y, 0) / points.length
  const covariance = points.reduce((sum, { x, y }) => sum + (x - meanX) * (y - meanY), 0)
  return covariance / points.reduce((sum, { x }) => sum + (x - meanX) ** 2, 0)
}
