// Is it well? One screen.
import { ask, type Overview } from '../api.ts'
import { Chart } from '../chart.tsx'
import { number, t, time } from '../language.ts'
import { Loading, Mark, Outside, useLoad } from '../ui.tsx'

const everyMs = 5_000

export function OverviewPage() {
  const overview = useLoad(
    'overview',
    signal => ask<Overview>('GET', '/admin/v1/overview', undefined, signal),
    everyMs,
  )
  return (
    <>
      <h1>{t('overview')}</h1>
      <Loading of={overview}>{data => <Content data={data} />}</Loading>
    </>
  )
}

function Content({ data }: { data: Overview }) {
  const { step, at, stores, workers, upstreams, reloads } = data
  const perSecond = (values: (number | null)[]) => values.map(value => (value === null ? null : value / step))
  const unhealthy = upstreams.filter(({ healthy }) => !healthy)
  const lost = Object.entries(stores.checks).filter(([, mark]) => mark !== 'ok')
  const isWell =
    unhealthy.length === 0 && lost.length === 0 && stores.status === 'ok' && reloads.last?.ok !== false
  const colors = ['--c1', '--c2', '--c3', '--c4', '--c5', '--c6']
  return (
    <>
      <p class={`verdict ${isWell ? 'good' : 'bad'}`} role="status">
        {isWell ? t('well') : t('notWell')}
      </p>
      <dl class="tiles">
        <div class="card">
          <dt>{t('stores')}</dt>
          {Object.entries(stores.checks).map(([name, mark]) => (
            <dd key={name}>
              <Mark good={mark === 'ok'}>
                {name} {mark}
              </Mark>
            </dd>
          ))}
        </div>
        <div class="card">
          <dt>{t('upstreams')}</dt>
          {upstreams.length === 0 && <dd class="muted">{t('none')}</dd>}
          {upstreams.map(({ name, healthy, targets }) => (
            <dd key={name}>
              <Mark good={healthy}>
                <Outside>{name}</Outside> {targets.filter(target => target.healthy).length}/{targets.length}
              </Mark>
            </dd>
          ))}
        </div>
        <div class="card">
          <dt>{t('workers')}</dt>
          {workers.map(({ id, state }) => (
            <dd key={id}>
              <Mark good={state === 'ready' || state === 'ok' || state === 'serving'}>
                {id} {state}
              </Mark>
            </dd>
          ))}
          {workers.length === 0 && <dd>1</dd>}
        </div>
        <div class="card">
          <dt>{t('lastReload')}</dt>
          <dd>
            {reloads.last === null ? (
              <span class="muted">{t('none')}</span>
            ) : (
              <Mark good={reloads.last.ok}>
                {reloads.last.ok ? t('ok') : t('refusedReload')} · {time(reloads.last.at)}
              </Mark>
            )}
          </dd>
        </div>
      </dl>
      <h2>{t('last15')}</h2>
      <div class="charts">
        <Chart
          title={t('requestsPerSecond')}
          at={at}
          lines={[
            { label: t('requests'), values: perSecond(data.requests), color: '--c1' },
            { label: t('errors'), values: perSecond(data.errors), color: '--c2' },
          ]}
        />
        <Chart
          title={t('responseTimes')}
          at={at}
          lines={[
            { label: 'p50', values: data.p50_ms, color: '--c1' },
            { label: 'p99', values: data.p99_ms, color: '--c3' },
          ]}
        />
        <Chart
          title={t('refusals')}
          at={at}
          lines={Object.entries(data.refused).map(([guard, values], index) => ({
            label: guard,
            values: perSecond(values),
            color: colors[index % colors.length] ?? '--c1',
          }))}
        />
        <Chart
          title={t('hitRate')}
          at={at}
          lines={[
            {
              label: '%',
              values: data.cache_hit_rate.map(value => (value === null ? null : value * 100)),
              color: '--c4',
            },
          ]}
        />
      </div>
      <p class="muted">
        {number(data.requests.reduce<number>((sum, value) => sum + (value ?? 0), 0))} {t('requests')}
      </p>
    </>
  )
}
