// The `error.type` of a failure: one of few values, and no details of the failure.

/** The error's code (a refusal's, SQLSTATE, or Node's), otherwise its class. */
export function errorType(thrown: unknown): string {
  if (!(thrown instanceof Error)) return typeof thrown
  const { code } = thrown as { code?: unknown }
  return typeof code === 'string' ? code : thrown.name
}
