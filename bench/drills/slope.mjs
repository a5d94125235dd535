// How much more there is at the end than at the beginning.

/** Of the line that fits best, over the whole time. @param {[number, number][]} points the time as 0 to 1, and what was seen */
export function slopeOf(points) {
  const mean = at => points.reduce((sum, point) => sum + point[at], 0) / points.length
  const [x, y] = [mean(0), mean(1)]
  const of = f => points.reduce((sum, point) => sum + f(point), 0)
  return of(([a, b]) => (a - x) * (b - y)) / of(([a]) => (a - x) ** 2)
}
