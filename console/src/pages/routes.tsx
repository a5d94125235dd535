// Routes with their guards as people read them, their targets, and what becomes of a request.
import { useState } from 'preact/hooks'
import { ask, type Route, type Target } from '../api.ts'
import { t } from '../language.ts'
import { Loading, Mark, messageOf, Outside, Table, useLoad } from '../ui.tsx'

export function RoutesPage({ userId }: { userId: string | undefined }) {
  const routes = useLoad(
    'routes',
    signal => ask<{ routes: Route[] }>('GET', '/admin/v1/routes', undefined, signal),
    5_000,
  )
  return (
    <>
      <h1>{t('routes')}</h1>
      <Explain userId={userId} />
      <Loading of={routes}>
        {data => (
          <Table head={[t('path'), t('method'), t('guards'), t('upstreams')]} label={t('routes')}>
            {data.routes.map(route => (
              <tr key={route.name}>
                <td>
                  <Outside code>{route.path}</Outside>
                  <div class="muted">
                    <Outside>{[route.name, ...route.hosts].join(' · ')}</Outside>
                  </div>
                </td>
                <td>{route.methods?.join(', ') ?? t('everyMethod')}</td>
                <td>
                  <Guards route={route} />
                </td>
                <td>
                  <Outside>{route.upstream.name}</Outside>
                  {route.upstream.targets.map(target => (
                    <TargetLine key={target.url} target={target} />
                  ))}
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Loading>
    </>
  )
}

function Guards({ route }: { route: Route }) {
  const { auth, plans, free_daily, rate_limit, websocket, guards } = route
  const access = auth === 'none' ? 'anybody' : auth
  const said = [
    t(access),
    ...(plans === null ? [] : [t('plansOnly', plans.join(', '))]),
    ...(guards.includes('verified') ? [t('verifiedOnly')] : []),
    ...(free_daily ? [t('freeDaily')] : []),
    ...(rate_limit === null ? [] : [t('rateLimit', rate_limit.limit, rate_limit.window_seconds)]),
    ...(websocket ? ['WebSocket'] : []),
  ]
  return (
    <ul class="chips">
      {said.map(text => (
        <li key={text}>{text}</li>
      ))}
    </ul>
  )
}

function TargetLine({ target: { url, healthy, circuit, avoided } }: { target: Target }) {
  const why = circuit === 'open' ? t('circuitOpen') : avoided ? t('avoided') : undefined
  return (
    <div>
      <Mark good={healthy}>
        <Outside code>{url}</Outside> {healthy ? t('healthy') : t('unhealthy')} {why && `(${why})`}
      </Mark>
    </div>
  )
}

interface Explained {
  [member: string]: unknown
}

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** Asks the running configuration, and sends nothing to a service. */
function Explain({ userId }: { userId: string | undefined }) {
  const [method, setMethod] = useState('GET')
  const [path, setPath] = useState('/')
  const [as, setAs] = useState(userId === undefined ? 'anonymous' : 'user')
  const [id, setId] = useState(userId ?? '')
  const [answer, setAnswer] = useState<Explained>()
  const [failure, setFailure] = useState<string>()

  async function submit(event: Event) {
    event.preventDefault()
    const who = as === 'user' ? { user_id: Number(id) } : as === 'anonymous' ? undefined : { plan: as }
    setFailure(undefined)
    try {
      setAnswer(await ask<Explained>('POST', '/admin/v1/explain', { method, path, ...(who && { as: who }) }))
    } catch (error) {
      setAnswer(undefined)
      setFailure(t('failed', messageOf(error)))
    }
  }

  return (
    <form class="card" onSubmit={submit}>
      <h2>{t('explain')}</h2>
      <div class="row">
        <label>
          {t('method')}
          <select value={method} onInput={event => setMethod(event.currentTarget.value)}>
            {methods.map(name => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label class="wide">
          {t('path')}
          <input value={path} onInput={event => setPath(event.currentTarget.value)} required />
        </label>
        <label>
          {t('asUser')}
          <select value={as} onInput={event => setAs(event.currentTarget.value)}>
            <option value="anonymous">{t('asAnonymous')}</option>
            <option value="free">free</option>
            <option value="premium">premium</option>
            <option value="pro">pro</option>
            <option value="user">{t('user')}</option>
          </select>
        </label>
        {as === 'user' && (
          <label>
            {t('userId')}
            <input
              value={id}
              inputMode="numeric"
              onInput={event => setId(event.currentTarget.value)}
              required
            />
          </label>
        )}
        <button type="submit">{t('ask')}</button>
      </div>
      <div aria-live="polite">
        {failure && <p class="notice bad">{failure}</p>}
        {answer && <Answer value={answer} />}
      </div>
    </form>
  )
}

/** Members one below the other, whatever they are. */
function Answer({ value }: { value: unknown }) {
  if (value === null || typeof value !== 'object') return <Outside code>{String(value)}</Outside>
  return (
    <dl class="answer">
      {Object.entries(value).map(([name, member]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <Answer value={member} />
          </dd>
        </div>
      ))}
    </dl>
  )
}
