// What stands in the place of data: that it comes, that there is none, or that it could not be had.
import type { ComponentChildren } from 'preact'
import type { ApiError } from '../api/client.ts'
import { useSpeech } from '../language/language.tsx'
import type { Loaded } from './load.ts'
import { Value } from './value.tsx'

/** Shows what was loaded; after a failure what was there before stays, below the failure. */
export function Show<Of>({
  loaded,
  children,
}: {
  loaded: Loaded<Of>
  children: (data: Of) => ComponentChildren
}) {
  const { t } = useSpeech()
  const { data, error, reload } = loaded
  return (
    <>
      {error !== undefined && (
        <div class="notice bad" role="alert">
          <Failure error={error} />
          <button type="button" onClick={reload}>
            {t('retry')}
          </button>
        </div>
      )}
      {data !== undefined && children(data)}
      {data === undefined && error === undefined && (
        <p class="quiet" role="status">
          {t('loading')}
        </p>
      )}
    </>
  )
}

export function Failure({ error: { status, code, message } }: { error: ApiError }) {
  const { t } = useSpeech()
  if (status === 0) return <span>{t('noAnswer')}</span>
  if (code === 'admin_forbidden') return <span>{t('roleForbids')}</span>
  return (
    <span>
      {t('refusedAnswer')}: <Value text={message} /> (<Value text={`${status} ${code}`} mono />)
    </span>
  )
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>
}

export function Badge({
  tone,
  children,
}: {
  tone: 'good' | 'warn' | 'bad' | 'plain'
  children: ComponentChildren
}) {
  return <span class={`badge ${tone}`}>{children}</span>
}
