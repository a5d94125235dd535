// Lets the operator describe a request, and shows how the gateway would handle it.
import { useId, useState } from 'preact/hooks'
import { ApiError, api } from '../api/client.ts'
import type { Explanation, Routes } from '../api/types.ts'
import { sentenceOf } from '../language/errors.ts'
import { useSpeech } from '../language/language.tsx'
import { useLoaded } from '../parts/load.ts'
import { Badge, Failure } from '../parts/states.tsx'
import { Value, visible } from '../parts/value.tsx'

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']
const callers = ['anonymous', 'free', 'premium', 'pro']

/** @param userId the id of the user to simulate; undefined to simulate a plan */
export function ExplainBox({ title, userId }: { title: string; userId?: number }) {
  const { t } = useSpeech()
  const id = useId()
  // The form starts with the path of the first route, so that operators do not need to know a path.
  const routes = useLoaded('routes to explain', () => api<Routes>('GET', '/routes')).data?.routes ?? []
  const [first] = routes
  const [typedMethod, setMethod] = useState<string>()
  const [typedPath, setPath] = useState<string>()
  const [typedHost, setHost] = useState<string>()
  const path = typedPath ?? first?.path ?? '/'
  const own = routes.find(route => route.path === path)
  const method = typedMethod ?? own?.methods?.find(name => methods.includes(name)) ?? 'GET'
  const host = typedHost ?? own?.hosts[0] ?? ''
  const [as, setAs] = useState('anonymous')
  const [used, setUsed] = useState('0')
  const [answer, setAnswer] = useState<Explanation | ApiError>()
  const [isBusy, setBusy] = useState(false)

  async function ask(event: Event): Promise<void> {
    event.preventDefault()
    setBusy(true)
    const caller =
      userId !== undefined
        ? { as: { user_id: userId } }
        : as === 'anonymous'
          ? { as }
          : { as, used_today: Number(used) }
    const question = { method, path, ...(host === '' ? {} : { host }), ...caller }
    try {
      setAnswer(await api<Explanation>('POST', '/explain', question))
    } catch (error) {
      setAnswer(error instanceof ApiError ? error : new ApiError(0, ''))
    }
    setBusy(false)
  }

  return (
    <section class="panel" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      <p class="quiet">{t('explainHint')}</p>
      <form class="line" onSubmit={ask}>
        <label>
          {t('method')}
          <select value={method} onChange={e => setMethod(e.currentTarget.value)}>
            {methods.map(name => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label class="wide">
          {t('path')}
          <input
            required
            value={path}
            list={`${id}-paths`}
            spellcheck={false}
            autocomplete="off"
            onInput={e => setPath(e.currentTarget.value)}
          />
        </label>
        <label>
          {t('host')}
          <input
            value={host}
            placeholder="localhost"
            spellcheck={false}
            onInput={e => setHost(e.currentTarget.value)}
          />
        </label>
        {userId === undefined && (
          <label>
            {t('as')}
            <select value={as} onChange={e => setAs(e.currentTarget.value)}>
              {callers.map(name => (
                <option key={name} value={name}>
                  {name === 'anonymous' ? t('anonymous') : name}
                </option>
              ))}
            </select>
          </label>
        )}
        {userId === undefined && as !== 'anonymous' && (
          <label>
            {t('usedToday')}
            <input
              type="number"
              min="0"
              max="9999999999"
              required
              value={used}
              onInput={e => setUsed(e.currentTarget.value)}
            />
          </label>
        )}
        <datalist id={`${id}-paths`}>
          {routes.map(route => (
            <option key={route.name} value={route.path} label={visible(route.name)} />
          ))}
        </datalist>
        <button type="submit" class="primary" disabled={isBusy}>
          {t('ask')}
        </button>
      </form>
      <div role="status">
        {answer instanceof ApiError ? (
          <p class="notice bad">
            <Failure error={answer} />
          </p>
        ) : (
          answer !== undefined && <Outcome answer={answer} />
        )}
      </div>
    </section>
  )
}

function Outcome({ answer: { route, guards, status, upstream, headers } }: { answer: Explanation }) {
  const { t, say } = useSpeech()
  const inWords = (code: string) => {
    const sentence = sentenceOf(code)
    return sentence === undefined ? '' : say(sentence)
  }
  const title =
    upstream !== null
      ? t('wouldPass', { upstream: upstream.name })
      : status !== null
        ? t('wouldRefuse', { status })
        : t('ownEndpoint')
  const toUpstream = upstream === null ? [] : Object.entries(headers.request.set)
  return (
    <div class="outcome">
      <p class={`notice ${upstream !== null ? 'good' : 'bad'}`}>
        <b>
          <Value text={title} />
        </b>
        {upstream !== null && (
          <>
            {' '}
            <Value text={upstream.url} mono />
          </>
        )}
      </p>
      <p>
        {route === null ? (
          t('noRoute')
        ) : (
          <>
            {t('route')}: <Value text={route} mono />
          </>
        )}
      </p>
      <ol class="guards">
        {guards.map(({ guard, outcome, status: code, error }) => (
          <li key={guard}>
            <Value text={guard} mono />{' '}
            <Badge tone={outcome === 'pass' ? 'good' : outcome === 'refuse' ? 'bad' : 'plain'}>
              {t(outcome)}
            </Badge>{' '}
            {error !== undefined && (
              <>
                {inWords(error)} <Value text={`${code} ${error}`} mono />
              </>
            )}
          </li>
        ))}
      </ol>
      {toUpstream.length > 0 && (
        <details>
          <summary>{t('fieldsTo')}</summary>
          <ul>
            {toUpstream.map(([name, value]) => (
              <li key={name}>
                <Value text={`${name}: ${value}`} mono />
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  )
}
