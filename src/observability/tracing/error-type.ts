// What `error.type` says of a failure: one of few words, and nothing of what the failure was about.

/** The error's code (of a refusal, SQLSTATE, or Node's), else its class. */
export function errorType(thrown: unknown): string {
  if (!(thrown instanceof Error)) return typeof thrown
  const { code } = thrown as { code?: unknown }
  return typeof code === 'string' ? code : thrown.name
}
