// Shows the state of the data of a page: loading, loaded, empty, or failed.
import type { ComponentChildren } from 'preact'
import type { ApiError } from '../api/client.ts'
import { sentenceOf } from '../language/errors.ts'
import { useSpeech } from '../language/language.tsx'
import type { Loaded } from './load.ts'
import { Value, visible } from './value.tsx'

/** Shows the loaded data. If a reload fails, the previous data stays visible below the error message. */
export function Show<Of>({
  loaded,
  children,
}: {
  loaded: Loaded<Of>
  children: (data: Of) => ComponentChildren
}) {
  const { t } = useSpeech()
  const { data, error } = loaded
  return (
    <>
      <FailureWithRetry of={loaded} />
      {data !== undefined && children(data)}
      {data === undefined && error === undefined && (
        <p class="quiet" role="status">
          {t('loading')}
        </p>
      )}
    </>
  )
}

/** Shows the error of a failed load with a button to retry. Shows nothing if there is no error. */
export function FailureWithRetry({ of: { error, reload } }: { of: Loaded<unknown> }) {
  const { t } = useSpeech()
  if (error === undefined) return null
  return (
    <div class="notice bad" role="alert">
      <Failure error={error} />
      <button type="button" onClick={reload}>
        {t('retry')}
      </button>
    </div>
  )
}

export function Failure({ error: { status, code, field } }: { error: ApiError }) {
  const { t, say } = useSpeech()
  if (status === 0) return <span>{t('noAnswer')}</span>
  const sentence = sentenceOf(code)
  return (
    <span>
      {sentence === undefined ? t('refusedAnswer') : say(sentence)}{' '}
      {field !== undefined && visible(`${t('invalidField', { field })} `)}
      (<Value text={`${status} ${code}`.trim()} mono />)
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
