// What operators did, and what they were refused.
import { useState } from 'preact/hooks'
import { type AuditEntry, ask, query } from '../api.ts'
import { t, time } from '../language.ts'
import { Loading, Mark, Outside, Table, useList } from '../ui.tsx'

export function AuditPage() {
  const [operator, setOperator] = useState('')
  const [userId, setUserId] = useState('')
  const { first, rows, more } = useList(`audit ${operator} ${userId}`, async cursor => {
    const path = `/admin/v1/audit${query({ operator, user_id: /^\d*$/.test(userId) ? userId : '', cursor })}`
    const { entries, next_cursor } = await ask<{ entries: AuditEntry[]; next_cursor: string | null }>(
      'GET',
      path,
    )
    return [entries, next_cursor]
  })
  return (
    <>
      <h1>{t('audit')}</h1>
      <search class="row">
        <label>
          {t('operator')}
          <input type="search" value={operator} onInput={event => setOperator(event.currentTarget.value)} />
        </label>
        <label>
          {t('userId')}
          <input
            type="search"
            inputMode="numeric"
            value={userId}
            onInput={event => setUserId(event.currentTarget.value)}
          />
        </label>
      </search>
      <Loading of={first}>
        {() => (
          <>
            <AuditTable entries={rows} />
            {more}
          </>
        )}
      </Loading>
    </>
  )
}

export function AuditTable({ entries }: { entries: AuditEntry[] }) {
  return (
    <Table
      head={[t('when'), t('operator'), t('action'), t('user'), t('changes'), t('answer')]}
      label={t('audit')}
    >
      {entries.map(entry => (
        <tr key={entry.id}>
          <td>{time(entry.at)}</td>
          <td>
            <Outside>{entry.operator}</Outside>
          </td>
          <td>
            <Outside code>
              {entry.method} {entry.route}
            </Outside>
          </td>
          <td class="number">
            {entry.user_id === null ? '–' : <a href={`#/users/${entry.user_id}`}>{entry.user_id}</a>}
          </td>
          <td>
            {entry.changes !== null && Object.keys(entry.changes).length > 0 && (
              <Outside code>{JSON.stringify(entry.changes)}</Outside>
            )}
          </td>
          <td>
            <Mark good={entry.status < 400}>{entry.status}</Mark>
          </td>
        </tr>
      ))}
    </Table>
  )
}
