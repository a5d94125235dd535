// Loads the data of a page. The data can be reloaded on demand, and at an interval while the page is visible.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ApiError } from '../api/client.ts'

export interface Loaded<Of> {
  readonly data: Of | undefined
  readonly error: ApiError | undefined
  reload(): void
}

/**
 * @param key the name of the data; when `key` changes, the previous data is dropped and `load` is called again
 * @param load the function that loads the data
 * @param everyMs the interval between loads in milliseconds; undefined for no interval
 */
export function useLoaded<Of>(key: string, load: () => Promise<Of>, everyMs?: number): Loaded<Of> {
  const [state, setState] = useState<{ key: string; data?: Of; error?: ApiError }>({ key })
  const [round, setRound] = useState(0)
  const latest = useRef(load)
  latest.current = load
  useEffect(() => {
    let isCurrent = true
    const run = () =>
      latest.current().then(
        data => isCurrent && setState({ key, data }),
        (error: unknown) => {
          if (!isCurrent) return
          const known = error instanceof ApiError ? error : new ApiError(0, '')
          setState(before => ({ ...(before.key === key ? before : {}), key, error: known }))
        },
      )
    void run()
    if (everyMs === undefined)
      return () => {
        isCurrent = false
      }
    const tick = () => {
      if (!document.hidden) void run()
    }
    const timer = setInterval(tick, everyMs)
    document.addEventListener('visibilitychange', tick)
    return () => {
      isCurrent = false
      clearInterval(timer)
      document.removeEventListener('visibilitychange', tick)
    }
  }, [key, round, everyMs])
  const reload = useCallback(() => setRound(before => before + 1), [])
  const fits = state.key === key
  return { data: fits ? state.data : undefined, error: fits ? state.error : undefined, reload }
}
