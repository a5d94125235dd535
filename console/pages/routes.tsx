// Shows the routes with their requirements, their upstreams, and the state of their targets.
import { useRef } from 'preact/hooks'
import { can } from '../api/abilities.ts'
import { api } from '../api/client.ts'
import { type Reading, ratesBetween, readTraffic } from '../api/traffic.ts'
import type { Role, Route, Routes, Target } from '../api/types.ts'
import { type Speech, useSpeech } from '../language/language.tsx'
import { useLoaded } from '../parts/load.ts'
import { Badge, Empty, FailureWithRetry, Show } from '../parts/states.tsx'
import { Value, visible } from '../parts/value.tsx'
import { ExplainBox } from './explain-box.tsx'
import { usePlans } from './plans.tsx'

export function RoutesPage({ role }: { role: Role }) {
  const { t } = useSpeech()
  const readings = useRef<readonly Reading[]>([])
  const load = async () => {
    const [{ routes }, reading] = await Promise.all([api<Routes>('GET', '/routes'), readTraffic()])
    readings.current = [...readings.current.slice(-1), reading]
    return { routes, readings: readings.current }
  }
  const loaded = useLoaded('routes', load, 10_000)
  const plans = usePlans()
  const hasPlanRates = plans.data?.plans.some(plan => plan.rate_limit !== null) ?? false
  return (
    <>
      <h1>{t('routes')}</h1>
      <FailureWithRetry of={plans} />
      {can(role, 'explain') && <ExplainBox title={t('explain')} plans={plans.data} />}
      <Show loaded={loaded}>
        {({ routes, readings }) =>
          routes.length === 0 ? (
            <Empty>{t('noRoutes')}</Empty>
          ) : (
            <ul class="cards">
              {routes.map(route => (
                <li key={route.name}>
                  <RouteCard route={route} readings={readings} hasPlanRates={hasPlanRates} />
                </li>
              ))}
            </ul>
          )
        }
      </Show>
    </>
  )
}

interface RouteCardProps {
  readonly route: Route
  readonly readings: readonly Reading[]
  /** Whether any plan has a rate limit. Such a limit applies to every route, except routes with `auth: none`. */
  readonly hasPlanRates: boolean
}

function RouteCard({ route, readings, hasPlanRates }: RouteCardProps) {
  const speech = useSpeech()
  const { t, number } = speech
  const { name, path, methods, hosts, websocket, upstream } = route
  const [before, after] = readings
  const rates = before && after && ratesBetween(before, after, name)
  return (
    <article>
      <h2>
        <Value text={name} />
      </h2>
      <p>
        {methods !== null && <Value text={`${methods.join(', ')} `} mono />}
        <Value text={path} mono /> {websocket && <Badge tone="plain">{t('webSocket')}</Badge>}
        {hosts.length > 0 && (
          <span class="quiet">
            {' '}
            <Value text={hosts.join(', ')} mono />
          </span>
        )}
      </p>
      <h3>{t('guards')}</h3>
      <ul class="tags">
        {asked(route, hasPlanRates, speech).map(text => (
          <li key={text}>{visible(text)}</li>
        ))}
      </ul>
      <h3>
        {t('upstream')}: <Value text={upstream === null ? t('forwardAuthOnly') : upstream.name} />
      </h3>
      <ul class="targets">
        {upstream?.targets.map(target => (
          <li key={target.url}>
            <Value text={target.url} mono /> <TargetState target={target} />
          </li>
        ))}
      </ul>
      {rates !== undefined && (
        <p class="quiet">
          {t('requestsPerSecond')}: <b>{number(rates.perSecond, 1)}</b> · {t('errorShare')}:{' '}
          <b>{number(rates.failed * 100, 1)} %</b>
        </p>
      )}
    </article>
  )
}

function TargetState({ target: { healthy, checks, circuit, avoided } }: { target: Target }) {
  const { t } = useSpeech()
  return (
    <>
      <Badge tone={healthy ? 'good' : 'bad'}>{t(healthy ? 'healthy' : 'unhealthy')}</Badge>
      {checks === 'failing' && <Badge tone="bad">{t('checksFailing')}</Badge>}
      {circuit === 'open' && <Badge tone="bad">{t('circuitOpen')}</Badge>}
      {circuit === 'half_open' && <Badge tone="warn">{t('circuitTrying')}</Badge>}
      {avoided && <Badge tone="warn">{t('avoided')}</Badge>}
    </>
  )
}

/** Returns readable texts for the guards, in the order in which they run. */
function asked(
  { auth, guards, scope, plans, quota, rate_limit, max_body }: Route,
  hasPlanRates: boolean,
  { t, number }: Speech,
): string[] {
  const texts: Partial<Record<string, string | string[]>> = {
    authenticate: t(auth === 'optional' ? 'guardOptional' : 'guardAuthenticate'),
    plan:
      plans === null
        ? t('guardPlanOfQuota', { quota: quota?.name ?? '' })
        : t('guardPlan', { plans: plans.join(', ') }),
    scope: scope === null ? t('guardBearerOnly') : t('guardScope', { scope }),
    verified: t('guardVerified'),
    free_daily: t('guardFreeDaily'),
    rate_limit: [
      ...(hasPlanRates && auth !== 'none' ? [t('guardRateLimitOfPlan')] : []),
      ...(rate_limit === null
        ? []
        : [
            t('guardRateLimit', {
              limit: number(rate_limit.limit),
              window: number(rate_limit.window_seconds),
            }),
          ]),
    ],
    ...(quota && { quota: t('guardQuota', { quota: quota.name, cost: number(quota.cost) }) }),
    ...(max_body !== null && { max_body: t('guardMaxBody', { bytes: number(max_body) }) }),
  }
  const asked = guards.filter(guard => guard !== 'target').flatMap(guard => texts[guard] ?? guard)
  return auth === 'none' ? [t('everyone'), ...asked] : asked
}
