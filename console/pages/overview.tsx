// Shows the state of each part of the gateway, and charts of the last 15 minutes.
import { api } from '../api/client.ts'
import type { Overview, Series } from '../api/types.ts'
import { type Speech, useSpeech } from '../language/language.tsx'
import { Chart } from '../parts/chart.tsx'
import { useLoaded } from '../parts/load.ts'
import { Moment } from '../parts/moment.tsx'
import { Badge, Show } from '../parts/states.tsx'
import { Value } from '../parts/value.tsx'

export function OverviewPage() {
  const { t } = useSpeech()
  const loaded = useLoaded('overview', () => api<Overview>('GET', '/overview'), 10_000)
  return (
    <>
      <h1>{t('overview')}</h1>
      <Show loaded={loaded}>{overview => <Details overview={overview} />}</Show>
    </>
  )
}

function Details({ overview }: { overview: Overview }) {
  const speech = useSpeech()
  const { t } = speech
  const { step, at, requests, errors, refused, p50_ms, p99_ms, cache_hit_rate } = overview
  const { stores, workers, upstreams, reloads } = overview
  const perSecond = (series: Series) => series.map(value => (value === null ? null : value / step))
  const refusing = Object.entries(refused).filter(([, series]) => series.some(Boolean))
  const isQuiet = !requests.some(Boolean)
  return (
    <>
      <Verdict overview={overview} />
      <Warnings warnings={overview.warnings} />
      <div class="facts">
        <section>
          <h2>{t('stores')}</h2>
          <ul>
            {Object.entries(stores).map(([name, status]) => (
              <li key={name}>
                <Value text={name} /> <Badge tone={toneOf[status]}>{t(status)}</Badge>
              </li>
            ))}
          </ul>
        </section>
        <section>
          <h2>{t('workers')}</h2>
          <ul>
            {workers.map(({ id, state }) => (
              <li key={id}>
                {id} <Badge tone={toneOf[state]}>{t(state)}</Badge>
              </li>
            ))}
          </ul>
        </section>
        <section>
          <h2>{t('upstreams')}</h2>
          <ul>
            {upstreams.map(({ name, targets }) => {
              const up = targets.filter(({ healthy }) => healthy).length
              const tone = up === 0 ? 'bad' : up < targets.length ? 'warn' : 'good'
              return (
                <li key={name}>
                  <Value text={name} /> <Badge tone={tone}>{`${up}/${targets.length}`}</Badge>
                </li>
              )
            })}
          </ul>
        </section>
        <section>
          <h2>{t('lastReload')}</h2>
          {reloads.last === null ? (
            <p class="quiet">{t('neverReloaded')}</p>
          ) : (
            <p>
              <Badge tone={reloads.last.ok ? 'good' : 'bad'}>
                {t(reloads.last.ok ? 'taken' : 'refused')}
              </Badge>{' '}
              <Moment at={reloads.last.at} />
            </p>
          )}
        </section>
      </div>
      <h2>
        {t('lastMinutes')} <span class="quiet aside">{t('timeZone', { zone: speech.zone() })}</span>
      </h2>
      {isQuiet && <p class="quiet">{t('noTraffic')}</p>}
      <div class="charts">
        <Chart
          title={t('requests')}
          unit={t('perSecond')}
          at={at}
          lines={[{ label: t('requests'), values: perSecond(requests) }]}
        />
        <Chart
          title={t('errors')}
          unit={t('perStep', { step })}
          at={at}
          lines={[{ label: t('errors'), values: errors }]}
        />
        <Chart
          title={t('latency')}
          unit={t('milliseconds')}
          at={at}
          lines={[
            { label: t('half'), values: p50_ms },
            { label: t('most'), values: p99_ms },
          ]}
        />
        <Chart
          title={t('refusals')}
          unit={t('perSecond')}
          at={at}
          lines={(refusing.length > 0 ? refusing : [['', at.map(() => 0)] as const]).map(
            ([label, values]) => ({
              label,
              values: perSecond(values),
            }),
          )}
        />
        <Chart
          title={t('hitRate')}
          unit={t('percent')}
          at={at}
          lines={[
            { label: t('hitRate'), values: cache_hit_rate.map(rate => (rate === null ? null : rate * 100)) },
          ]}
        />
      </div>
    </>
  )
}

const toneOf = { ok: 'good', degraded: 'warn', down: 'bad' } as const

function Verdict({ overview }: { overview: Overview }) {
  const speech = useSpeech()
  const problems = problemsOf(overview, speech)
  const isDown = problems.some(({ isGrave }) => isGrave)
  const tone = problems.length === 0 ? 'good' : isDown ? 'bad' : 'warn'
  const { t } = speech
  return (
    <section class={`verdict ${tone}`}>
      <p class="verdict-title">{t(problems.length === 0 ? 'isWell' : isDown ? 'isDown' : 'isNotWell')}</p>
      {problems.length > 0 && (
        <ul>
          {problems.map(({ text, name }) => (
            <li key={`${text} ${name}`}>
              {text}
              {name !== '' && ': '}
              <Value text={name} />
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

/** Shows the warnings of `/readyz`. They are always in English. */
function Warnings({ warnings }: { warnings: readonly string[] }) {
  const { t } = useSpeech()
  if (warnings.length === 0) return null
  return (
    <section class="panel warnings">
      <h2>{t('warnings')}</h2>
      <ul lang="en">
        {warnings.map(warning => (
          <li key={warning}>
            <Value text={warning} />
          </li>
        ))}
      </ul>
    </section>
  )
}

interface Problem {
  text: string
  name: string
  isGrave: boolean
}

function problemsOf(
  { stores, workers, upstreams, reloads, requests, errors }: Overview,
  { t }: Speech,
): Problem[] {
  const sum = (series: Series) => series.slice(-6).reduce<number>((total, value) => total + (value ?? 0), 0)
  return [
    ...Object.entries(stores)
      .filter(([, status]) => status !== 'ok')
      .map(([name, status]) => ({ text: t('problemStore'), name, isGrave: status === 'down' })),
    ...workers
      .filter(({ state }) => state !== 'ok')
      .map(({ id, state }) => ({ text: t('problemWorker'), name: String(id), isGrave: state === 'down' })),
    ...upstreams
      .filter(({ targets }) => targets.some(({ healthy }) => !healthy))
      .map(({ name, healthy }) => ({
        text: t(healthy ? 'problemTarget' : 'problemUpstream'),
        name,
        isGrave: !healthy,
      })),
    ...(reloads.last?.ok === false ? [{ text: t('problemReload'), name: '', isGrave: false }] : []),
    ...(sum(errors) > sum(requests) / 100 ? [{ text: t('problemErrors'), name: '', isGrave: false }] : []),
  ]
}
