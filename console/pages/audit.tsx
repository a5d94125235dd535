// What operators did.
import { useState } from 'preact/hooks'
import { api, withQuery } from '../api/client.ts'
import type { Audit } from '../api/types.ts'
import { useSpeech } from '../language/language.tsx'
import { useLoaded } from '../parts/load.ts'
import { Moment } from '../parts/moment.tsx'
import { Badge, Empty, Show } from '../parts/states.tsx'
import { Paging, Table } from '../parts/table.tsx'
import { Value } from '../parts/value.tsx'

export function AuditPage() {
  const { t } = useSpeech()
  const [operator, setOperator] = useState('')
  const [userId, setUserId] = useState('')
  const [filter, setFilter] = useState({ operator: '', user_id: '' })
  const [cursor, setCursor] = useState<string>()
  const path = withQuery('/audit', { ...filter, cursor })
  const loaded = useLoaded(path, () => api<Audit>('GET', path))
  const apply = (event: Event) => {
    event.preventDefault()
    setFilter({ operator: operator.trim(), user_id: userId.trim() })
    setCursor(undefined)
    loaded.reload()
  }
  return (
    <>
      <h1>{t('audit')}</h1>
      <search>
        <form class="line" onSubmit={apply}>
          <label>
            {t('operator')}
            <input value={operator} spellcheck={false} onInput={e => setOperator(e.currentTarget.value)} />
          </label>
          <label>
            {t('userId')}
            <input
              value={userId}
              inputMode="numeric"
              pattern="[0-9]*"
              onInput={e => setUserId(e.currentTarget.value)}
            />
          </label>
          <button type="submit">{t('show')}</button>
        </form>
      </search>
      <Show loaded={loaded}>
        {({ entries, next_cursor }) => (
          <>
            {entries.length === 0 ? <Empty>{t('noAudit')}</Empty> : <AuditTable entries={entries} />}
            <Paging
              cursor={cursor}
              next={next_cursor}
              onGo={setCursor}
              texts={{ more: t('more'), first: t('first') }}
            />
          </>
        )}
      </Show>
    </>
  )
}

export function AuditTable({ entries }: { entries: Audit['entries'] }) {
  const { t } = useSpeech()
  return (
    <Table
      caption={t('audit')}
      rows={entries}
      keyOf={({ id }) => id}
      columns={[
        { title: t('time'), cell: ({ at }) => <Moment at={at} /> },
        { title: t('operator'), cell: ({ operator }) => <Value text={operator} /> },
        { title: t('did'), cell: ({ method, route }) => <Value text={`${method} ${route}`} mono /> },
        {
          title: t('user'),
          cell: ({ user_id }) => (user_id === null ? '–' : <a href={`#users/${user_id}`}>{user_id}</a>),
        },
        {
          title: t('changes'),
          cell: ({ changes }) =>
            changes === null || Object.keys(changes).length === 0 ? (
              '–'
            ) : (
              <Value text={JSON.stringify(changes)} mono />
            ),
        },
        {
          title: t('status'),
          cell: ({ status }) => <Badge tone={status < 400 ? 'good' : 'bad'}>{status}</Badge>,
        },
      ]}
    />
  )
}
