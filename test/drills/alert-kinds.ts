// The kinds of receivers of the drill: what happens to an alert at each of them.

/** Receivers that the drill starts. */
export const receivers = 300

/** Users whose receivers are absent. Their alerts are emitted beside the others' alerts. */
export const absent = 30

/** `failing` responds with 500, `hanging` never responds, `down` is absent. */
export const kinds = ['up', 'failing', 'hanging', 'down'] as const
export type Kind = (typeof kinds)[number]

/** @param index of the receiver */
export function kindOf(index: number): Kind {
  if (index >= receivers) return 'down'
  return index % 10 === 0 ? 'hanging' : index % 10 === 1 ? 'failing' : 'up'
}

/** An alert that was emitted. */
export interface Emitted {
  /** Of its receiver. */
  readonly index: number
  /** Statuses that it was answered before it was accepted; 0 for no response. */
  readonly before: readonly number[]
  readonly status: number
  /** Milliseconds. */
  readonly took: number
  /** When it was accepted, on the clock that all processes of a machine share. */
  readonly at: bigint
}
