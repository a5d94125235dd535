// How a forwarded request ended, and the observer that is notified.

/** How an exchange ended: complete, broken off by the upstream, or abandoned by the client. */
export type Outcome = 'complete' | 'broken' | 'client_gone'

/** Notified of each attempt, and of the end: exactly one of `onEnd` and `onRefused`, once. */
export interface ForwardObserver {
  /**
   * @param target `scheme://host:port`
   * @param duration milliseconds to the response head, or to the end of the attempt if none came
   */
  onAttempt(target: string, duration: number): void
  /** The exchange is over. The client's side, if still open, is ended next. */
  onEnd(outcome: Outcome): void
  /**
   * No response was sent, and sending one is left to the observer.
   * @param thrown Refusal 400, 413, 502, 503 or 504; ClientDisconnected if the client is gone; or an unexpected error
   */
  onRefused(thrown: unknown): void
}
