// Makes a request target safe to log.

/** Removes the query and the authority: both may carry secrets. Returns 512 characters at most. */
export function redactPath(target: string): string {
  const queryStart = target.indexOf('?')
  const path = queryStart === -1 ? target : target.slice(0, queryStart)
  return (path.startsWith('/') ? path : path.replace(/^[^/]*:\/\/[^/]*/, '')).slice(0, 512)
}
