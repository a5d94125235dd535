// The interface through which a drill reports its results.

export interface Watch {
  say(text: string): void
  /**
   * Reports whether a requirement is met.
   * @param bar the requirement
   * @param measured the measured values; the table at the end of the run shows only the first line of this text
   */
  expect(bar: string, isMet: boolean, measured: string): void
}

export type Drill = (watch: Watch) => Promise<void>

/** Returns how often each value occurs, as text. For example, `200: 12, 503: 1` for status codes. */
export function countsOf(values: readonly (string | number)[]): string {
  const counts = new Map<string | number, number>()
  for (const value of values.toSorted()) counts.set(value, (counts.get(value) ?? 0) + 1)
  return [...counts].map(([value, count]) => `${value}: ${count}`).join(', ')
}
