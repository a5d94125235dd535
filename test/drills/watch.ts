// What a drill reports to: the run that started it.

export interface Watch {
  say(text: string): void
  /** @param measured one line for the table at the end, and more after it */
  expect(bar: string, isMet: boolean, measured: string): void
}

export type Drill = (watch: Watch) => Promise<void>

/** Counts equal values for a measurement: `200: 12, 503: 1`. */
export function countsOf(values: readonly (string | number)[]): string {
  const counts = new Map<string | number, number>()
  for (const value of values.toSorted()) counts.set(value, (counts.get(value) ?? 0) + 1)
  return [...counts].map(([value, count]) => `${value}: ${count}`).join(', ')
}
