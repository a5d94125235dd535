// The running configuration, its secrets masked, and what the last saved file had wrong.
import { useState } from 'preact/hooks'
import { ask, type Configuration } from '../api.ts'
import { t, time } from '../language.ts'
import { Loading, Mark, Outside, Table, useLoad } from '../ui.tsx'

export function ConfigurationPage() {
  const [filter, setFilter] = useState('')
  const configuration = useLoad('configuration', signal =>
    ask<Configuration>('GET', '/admin/v1/configuration', undefined, signal),
  )
  return (
    <>
      <h1>{t('configuration')}</h1>
      <Loading of={configuration}>
        {({ values, last_reload: reload }) => (
          <>
            {reload !== null && (
              <p>
                {t('lastReload')}{' '}
                <Mark good={reload.ok}>
                  {t(reload.ok ? 'ok' : 'refusedReload')} · {time(reload.at)}
                </Mark>
              </p>
            )}
            {reload !== null && reload.problems.length > 0 && (
              <section>
                <h2>{t('problems')}</h2>
                <Table head={[t('line'), t('key'), t('problem')]} label={t('problems')}>
                  {reload.problems.map(({ line, column, path, text }) => (
                    <tr key={`${line} ${column} ${path} ${text}`}>
                      <td class="number">
                        {line}:{column}
                      </td>
                      <td>
                        <Outside code>{path}</Outside>
                      </td>
                      <td>
                        <Outside>{text}</Outside>
                      </td>
                    </tr>
                  ))}
                </Table>
              </section>
            )}
            <search class="row">
              <label class="wide">
                {t('filter')}
                <input type="search" value={filter} onInput={event => setFilter(event.currentTarget.value)} />
              </label>
            </search>
            <Table head={[t('key'), t('value'), t('line')]} label={t('configuration')}>
              {values
                .filter(({ path }) => path.includes(filter))
                .map(({ path, value, line, waits_for_restart }) => (
                  <tr key={path}>
                    <td>
                      <Outside code>{path}</Outside>
                    </td>
                    <td>
                      <Outside code>{JSON.stringify(value)}</Outside>{' '}
                      {waits_for_restart && <Mark good={false}>{t('waits')}</Mark>}
                    </td>
                    <td class="number">{line ?? '–'}</td>
                  </tr>
                ))}
            </Table>
          </>
        )}
      </Loading>
    </>
  )
}
