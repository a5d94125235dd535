// Calculates the labels of a chart's axis, and finds the values that the chart must draw as points.

/**
 * Returns the labels of an axis, from 0 to at least the highest value `high`. The step between two labels is 1, 2 or 5,
 * multiplied by a power of ten.
 */
export function axisOf(high: number | null): number[] {
  const top = Math.max(high ?? 0, 1)
  const power = 10 ** Math.floor(Math.log10(top / 4))
  const step = power * ([1, 2, 5].find(factor => factor * power * 4 >= top) ?? 10)
  // A rounding error can make the quotient too large. Without the subtraction, `ceil` would then add a label.
  const count = Math.ceil(top / step - 1e-9)
  return Array.from({ length: count + 1 }, (_, index) => Number((index * step).toPrecision(12)))
}

/**
 * Returns the indexes of the values whose previous and next values are both missing. No line can reach such a value, so
 * the chart draws a point.
 */
export function pointsAlone(values: ArrayLike<number | null | undefined>): number[] {
  const isKnown = (index: number) => values[index] != null
  return Array.from(values, (_, index) => index).filter(
    index => isKnown(index) && !isKnown(index - 1) && !isKnown(index + 1),
  )
}
