/** The code of a system error, such as `ECONNRESET`; the message of any other error. */
export function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { code, message } = error as NodeJS.ErrnoException
  return code ?? message
}
