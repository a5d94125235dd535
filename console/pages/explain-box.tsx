// Lets the operator describe a request, and shows how the gateway would handle it.
import { useId, useState } from 'preact/hooks'
import { ApiError, api } from '../api/client.ts'
import type { Explanation, Plans, Routes } from '../api/types.ts'
import { sentenceOf } from '../language/errors.ts'
import { useSpeech } from '../language/language.tsx'
import { useLoaded } from '../parts/load.ts'
import { Badge, Failure } from '../parts/states.tsx'
import { Value, visible } from '../parts/value.tsx'
import { configuredNames, hasDailyUses } from './plans.tsx'

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']

interface Props {
  readonly title: string
  /** The ID of the user to simulate. If undefined, the form has a field to select a plan or an anonymous caller. */
  readonly userId?: number
  readonly plans: Plans | undefined
}

export function ExplainBox({ title, userId, plans }: Props) {
  const { t } = useSpeech()
  const id = useId()
  // The form starts with the path of the first route, so that operators do not need to know a path.
  const loaded = useLoaded('routes to explain', () => api<Routes>('GET', '/routes'))
  const routes = loaded.data?.routes ?? []
  const [first] = routes
  const [typedMethod, setMethod] = useState<string>()
  const [typedPath, setPath] = useState<string>()
  const [typedHost, setHost] = useState<string>()
  const path = typedPath ?? first?.path ?? '/'
  const own = routes.find(route => route.path === path)
  const method = typedMethod ?? own?.methods?.find(name => methods.includes(name)) ?? 'GET'
  // The form needs one host. For a wildcard such as `*.example.com`, it suggests `www.example.com`.
  const host = typedHost ?? own?.hosts[0]?.replace('*', 'www') ?? ''
  const [as, setAs] = useState('anonymous')
  const [usedToday, setUsedToday] = useState('0')
  const [used, setUsed] = useState('0')
  const [withKey, setWithKey] = useState(false)
  const [scopes, setScopes] = useState('')
  const [answer, setAnswer] = useState<Explanation | ApiError>()
  const [isBusy, setBusy] = useState(false)
  // The button is disabled until the routes are loaded. Before, the form contains the path `/` instead of the path of a
  // route.
  const isLoading = loaded.data === undefined && loaded.error === undefined
  const isPlan = userId === undefined && as !== 'anonymous'
  const takesUsedToday = isPlan && hasDailyUses(plans)
  const takesUsed = isPlan && routes.some(({ quota }) => quota !== null)

  async function ask(event: Event): Promise<void> {
    event.preventDefault()
    setBusy(true)
    const ofPlan = {
      plan: as,
      ...(takesUsedToday ? { used_today: Number(usedToday) } : {}),
      ...(takesUsed ? { used: Number(used) } : {}),
      ...(withKey
        ? { key: true, ...(scopes.trim() === '' ? {} : { scopes: scopes.trim().split(/[\s,]+/) }) }
        : {}),
    }
    const caller = userId !== undefined ? { user_id: userId } : isPlan ? ofPlan : as
    const question = { method, path, ...(host === '' ? {} : { host }), as: caller }
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
              {['anonymous', ...configuredNames(plans)].map(name => (
                <option key={name} value={name}>
                  {name === 'anonymous' ? t('anonymous') : name}
                </option>
              ))}
            </select>
          </label>
        )}
        {takesUsedToday && <UsesInput label={t('usedToday')} value={usedToday} onInput={setUsedToday} />}
        {takesUsed && <UsesInput label={t('usedOfQuota')} value={used} onInput={setUsed} />}
        {isPlan && (
          <label>
            {t('withApiKey')}
            <input type="checkbox" checked={withKey} onChange={e => setWithKey(e.currentTarget.checked)} />
          </label>
        )}
        {isPlan && withKey && (
          <label>
            {t('scopesOfKey')}
            <input
              value={scopes}
              placeholder={t('noLimit')}
              spellcheck={false}
              autocomplete="off"
              onInput={e => setScopes(e.currentTarget.value)}
            />
          </label>
        )}
        <datalist id={`${id}-paths`}>
          {routes.map(route => (
            <option key={route.name} value={route.path} label={visible(route.name)} />
          ))}
        </datalist>
        <button type="submit" class="primary" disabled={isBusy || isLoading}>
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

interface UsesInputProps {
  readonly label: string
  readonly value: string
  onInput(value: string): void
}

function UsesInput({ label, value, onInput }: UsesInputProps) {
  return (
    <label>
      {label}
      <input
        type="number"
        min="0"
        max="9999999999"
        required
        value={value}
        onInput={event => onInput(event.currentTarget.value)}
      />
    </label>
  )
}

function Outcome({ answer: { route, guards, status, upstream, headers } }: { answer: Explanation }) {
  const { t, say } = useSpeech()
  const inWords = (code: string) => {
    const sentence = sentenceOf(code)
    return sentence === undefined ? '' : say(sentence)
  }
  const isAllowed = status === 200
  const title =
    upstream !== null
      ? t('wouldPass', { upstream: upstream.name })
      : status !== null
        ? t(isAllowed ? 'wouldAllow' : 'wouldRefuse', { status })
        : t('ownEndpoint')
  const toUpstream = upstream === null ? [] : Object.entries(headers.request.set)
  return (
    <div class="outcome">
      <p class={`notice ${upstream !== null || isAllowed ? 'good' : 'bad'}`}>
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
