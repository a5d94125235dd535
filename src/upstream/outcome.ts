// How what was forwarded ended, and who is told.

/** How an exchange ended: whole, broken off by the upstream, or left by the client. */
export type Outcome = 'complete' | 'broken' | 'client_gone'

/** Who is told of each try, and how it ended: one of the last two, once. */
export interface ForwardObserver {
  /**
   * @param target `scheme://host:port` that it was sent to
   * @param duration milliseconds to the head of the answer, or to the end of the try where none came
   */
  onAttempt(target: string, duration: number): void
  /** The exchange is over, and the client's connection is about to know. */
  onEnd(outcome: Outcome): void
  /**
   * Nothing has been answered, and it is somebody else's to do.
   * @param thrown Refusal 502, 503, 504 or 413; ClientGone where nobody waits for an answer any more; or a fault
   */
  onRefused(thrown: unknown): void
}
