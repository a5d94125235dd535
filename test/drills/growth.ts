// Samples figures at even intervals, and checks how much each figure grows.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Watch } from './watch.ts'

export interface Look<Figure extends string> {
  /** The time when the sample was taken, as a share of the whole duration: 0 is the start, and 1 is the end. */
  readonly at: number
  readonly figures: Readonly<Record<Figure, number>>
}

export interface Bar {
  readonly name: string
  /**
   * The maximum growth of the figure over the whole duration. The growth is computed from the regression line of the
   * samples.
   */
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

/** @param title a prefix for the name of each figure */
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
      `${title}${name}: grows by less than ${most} in ${durationMs / 1_000} s`,
      slope < most,
      `growth ${slope.toFixed(2)}; between ${Math.min(...values).toFixed(1)} and ${Math.max(...values).toFixed(1)}`,
    )
  }
}

/** Returns the slope of the regression line (least squares). */
function slopeOf(points: readonly { x: number; y: number }[]): number {
  const meanX = points.reduce((sum, { x }) => sum + x, 0) / points.length
  const meanY = points.reduce((sum, { y }) => sum + y, 0) / points.length
  const covariance = points.reduce((sum, { x, y }) => sum + (x - meanX) * (y - meanY), 0)
  return covariance / points.reduce((sum, { x }) => sum + (x - meanX) ** 2, 0)
}
