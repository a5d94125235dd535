// A request target as it may be written down.

/** Without the query and an authority: both may carry secrets. 512 characters at most. */
export function loggablePath(target: string): string {
  const mark = target.indexOf('?')
  const path = mark === -1 ? target : target.slice(0, mark)
  return (path.startsWith('/') ? path : path.replace(/^[^/]*:\/\/[^/]*/, '')).slice(0, 512)
}
