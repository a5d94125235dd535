// What a drill reports to: the run that started it.

export interface Watch {
  say(text: string): void
  /** @param measured one line for the table at the end, and more after it */
  expect(bar: string, isMet: boolean, measured: string): void
}

export type Drill = (watch: Watch) => Promise<void>
