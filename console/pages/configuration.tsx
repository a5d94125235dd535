// Shows the running configuration, and the result of the last reload.
import { useState } from 'preact/hooks'
import { api } from '../api/client.ts'
import type { Configuration } from '../api/types.ts'
import { useSpeech } from '../language/language.tsx'
import { useLoaded } from '../parts/load.ts'
import { Badge, Empty, Show } from '../parts/states.tsx'
import { Table } from '../parts/table.tsx'
import { Value } from '../parts/value.tsx'
import { PlanOverview } from './plans.tsx'

export function ConfigurationPage() {
  const { t } = useSpeech()
  const loaded = useLoaded('configuration', () => api<Configuration>('GET', '/configuration'), 30_000)
  return (
    <>
      <h1>{t('configuration')}</h1>
      <Show loaded={loaded}>
        {({ values, last_reload }) => (
          <>
            <LastReload reload={last_reload} />
            <PlanOverview />
            <Values values={values} />
          </>
        )}
      </Show>
    </>
  )
}

function LastReload({ reload }: { reload: Configuration['last_reload'] }) {
  const { t, time } = useSpeech()
  return (
    <section class="panel">
      <h2>{t('lastReload')}</h2>
      {reload === null ? (
        <p class="quiet">{t('noReload')}</p>
      ) : (
        <p class={`notice ${reload.ok ? 'good' : 'bad'}`}>
          {t(reload.ok ? 'reloadTaken' : 'reloadRefused', { when: time(reload.at) })}
        </p>
      )}
      {reload !== null && reload.problems.length > 0 && (
        <>
          <h3>{t('problems')}</h3>
          <ul>
            {reload.problems.map(({ line, column, path, text }) => (
              <li key={`${line}:${column} ${path}`}>
                {t('line')} {line}:{column} <Value text={path} mono /> <Value text={text} />
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  )
}

function ConfiguredValue({ value }: { value: unknown }) {
  const { t } = useSpeech()
  if (value === null || value === undefined || value === '') return <span class="quiet">{t('notSet')}</span>
  return <Value text={typeof value === 'string' ? value : JSON.stringify(value)} mono />
}

function Values({ values }: { values: Configuration['values'] }) {
  const { t } = useSpeech()
  const [filter, setFilter] = useState('')
  const shown = values.filter(({ path }) => path.toLowerCase().includes(filter.trim().toLowerCase()))
  return (
    <section>
      <div class="title">
        <h2>{t('running')}</h2>
        <label class="inline">
          {t('filter')}
          <input
            type="search"
            value={filter}
            spellcheck={false}
            onInput={e => setFilter(e.currentTarget.value)}
          />
        </label>
      </div>
      {shown.length === 0 ? (
        <Empty>{t('noValues')}</Empty>
      ) : (
        <Table
          caption={t('running')}
          rows={shown}
          keyOf={({ path }) => path}
          columns={[
            { title: t('setting'), cell: ({ path }) => <Value text={path} mono /> },
            {
              title: t('value'),
              cell: ({ value, waits_for_restart }) => (
                <>
                  <ConfiguredValue value={value} />{' '}
                  {waits_for_restart && <Badge tone="warn">{t('waitsForRestart')}</Badge>}
                </>
              ),
            },
            {
              title: t('line'),
              cell: ({ line }) => line ?? <span class="quiet">{t('default')}</span>,
              isNumber: true,
            },
          ]}
        />
      )}
    </section>
  )
}
