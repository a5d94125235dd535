// What every page is made of: states of loading, dialogs, tables, marks.
import type { ComponentChildren } from 'preact'
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ApiError } from './api.ts'
import { t } from './language.ts'

/** What the gateway said, or that it said nothing. */
export function messageOf(error: unknown): string {
  if (error instanceof ApiError && error.status === 0) return t('unreachable')
  return error instanceof Error ? error.message : String(error)
}

interface Loaded<T> {
  data: T | undefined
  error: unknown
  reload(): void
}

/**
 * Loads now, when `key` changes, and again and again.
 * @param everyMs undefined: once
 */
export function useLoad<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  everyMs?: number,
): Loaded<T> {
  const [state, setState] = useState<{ key: string; data: T | undefined; error: unknown }>({
    key,
    data: undefined,
    error: undefined,
  })
  const [turn, setTurn] = useState(0)
  const latest = useRef(load)
  latest.current = load
  // `turn` asks for another look.
  useEffect(() => {
    const controller = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const look = async () => {
      try {
        const data = await latest.current(controller.signal)
        if (!controller.signal.aborted) setState({ key, data, error: undefined })
      } catch (error) {
        if (!controller.signal.aborted) setState(before => ({ ...before, key, error }))
      }
      if (everyMs !== undefined && !controller.signal.aborted) timer = setTimeout(look, everyMs)
    }
    void look()
    return () => {
      controller.abort()
      clearTimeout(timer)
    }
  }, [key, turn, everyMs])
  const reload = useCallback(() => setTurn(before => before + 1), [])
  const isOfKey = state.key === key
  return { data: isOfKey ? state.data : undefined, error: isOfKey ? state.error : undefined, reload }
}

/** What was loaded; or that it is being loaded, or why it was not. */
export function Loading<T>({
  of: { data, error, reload },
  children,
}: {
  of: Loaded<T>
  children: (data: T) => ComponentChildren
}) {
  return (
    <>
      {error !== undefined && (
        <p class="notice bad" role="alert">
          {t('failed', messageOf(error))}{' '}
          <button type="button" class="quiet" onClick={reload}>
            {t('retry')}
          </button>
        </p>
      )}
      {data === undefined ? error === undefined && <p class="muted">{t('loading')}</p> : children(data)}
    </>
  )
}

/** Text that came from outside: its direction stays its own. */
export function Outside({ children, code }: { children: ComponentChildren; code?: boolean }) {
  return code ? (
    <code>
      <bdi>{children}</bdi>
    </code>
  ) : (
    <bdi>{children}</bdi>
  )
}

export function Mark({ good, children }: { good: boolean | undefined; children: ComponentChildren }) {
  return <span class={`mark ${good === undefined ? '' : good ? 'good' : 'bad'}`}>{children}</span>
}

export function Table({
  head,
  children,
  label,
}: {
  head: string[]
  children: ComponentChildren[]
  label: string
}) {
  if (children.length === 0) return <p class="muted">{t('nothing')}</p>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a table that is wider than the screen is scrolled by keyboard too.
    <section class="scroll" tabIndex={0} aria-label={label}>
      <table>
        <thead>
          <tr>
            {head.map(title => (
              <th scope="col" key={title}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  )
}

interface Asked {
  title: string
  text: string
  isDangerous?: boolean
  /** Does it. */
  run(): Promise<unknown>
}

/** Asks before each action, and says afterwards what was done. */
export function useConfirm(onDone: () => void): { confirm(asked: Asked): void; dialog: ComponentChildren } {
  const [asked, setAsked] = useState<Asked>()
  const [said, setSaid] = useState<{ text: string; isBad: boolean }>()
  const [isBusy, setBusy] = useState(false)
  const ref = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    if (asked !== undefined) ref.current?.showModal()
  }, [asked])

  async function run() {
    if (asked === undefined) return
    setBusy(true)
    try {
      await asked.run()
      setSaid({ text: t('done', asked.title), isBad: false })
      onDone()
    } catch (error) {
      setSaid({ text: t('failed', messageOf(error)), isBad: true })
    }
    setBusy(false)
    setAsked(undefined)
  }

  const dialog = (
    <>
      <div role="status">{said && <p class={`notice ${said.isBad ? 'bad' : 'good'}`}>{said.text}</p>}</div>
      {asked && (
        <dialog ref={ref} onClose={() => setAsked(undefined)} aria-labelledby="asked-title">
          <h2 id="asked-title">{asked.title}</h2>
          <p>
            <Outside>{asked.text}</Outside>
          </p>
          <div class="row end">
            <button type="button" class="quiet" onClick={() => ref.current?.close()}>
              {t('cancel')}
            </button>
            <button type="button" class={asked.isDangerous ? 'danger' : ''} disabled={isBusy} onClick={run}>
              {asked.title}
            </button>
          </div>
        </dialog>
      )}
    </>
  )
  return {
    confirm(next) {
      setSaid(undefined)
      setAsked(next)
    },
    dialog,
  }
}

/** Pages of a listing, one after the other. */
export function useList<Row>(
  key: string,
  page: (cursor: string | undefined) => Promise<[Row[], string | null]>,
) {
  const [rows, setRows] = useState<Row[]>([])
  const [cursor, setCursor] = useState<string | null>(null)
  const first = useLoad(key, async () => {
    const [found, next] = await page(undefined)
    setRows(found)
    setCursor(next)
    return true
  })
  const more =
    cursor === null ? null : (
      <button
        type="button"
        class="quiet"
        onClick={async () => {
          const [found, next] = await page(cursor)
          setRows(before => [...before, ...found])
          setCursor(next)
        }}
      >
        {t('more')}
      </button>
    )
  return { first, rows, more }
}
