/** Returns the code of a system error, for example `ECONNRESET`, or the message of another error. */
export function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { code, message } = error as NodeJS.ErrnoException
  return code ?? message
}
