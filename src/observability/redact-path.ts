// A request target as it may be written down.

/** Without the query and an authority: both may carry secrets. 512 characters at most. */
export function redactPath(target: string): string {
  const queryStart = target.indexOf('?')
  const path = queryStart === -1 ? target : target.slice(0, queryStart)
  return (path.startsWith('/') ? path : path.replace(/^[^/]*:\/\/[^/]*/, '')).slice(0, 512)
}
