// The kinds of receivers in the drill `webhooks`.

/** The number of receivers that the drill starts. */
export const receivers = 300

/** The number of additional users whose receivers do not exist. */
export const absent = 30

/** `failing` responds with 500, and `hanging` never responds. At the address of `down`, no server listens. */
export const kinds = ['up', 'failing', 'hanging', 'down'] as const
export type Kind = (typeof kinds)[number]

/** @param index the index of the receiver */
export function kindOf(index: number): Kind {
  if (index >= receivers) return 'down'
  return index % 10 === 0 ? 'hanging' : index % 10 === 1 ? 'failing' : 'up'
}

/** A sent alert. */
export interface Emitted {
  /** The index of the receiver of this alert. */
  readonly index: number
  /**
   * The status codes of earlier requests that sent this alert but failed. The value 0 is for a request without a
   * response.
   */
  readonly before: readonly number[]
  readonly status: number
  /** The milliseconds from the last request to its response. */
  readonly took: number
  /** The time when a gateway accepted the alert, in nanoseconds of the system's monotonic clock. */
  readonly at: bigint
}
