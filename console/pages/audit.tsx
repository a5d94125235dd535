// Shows the audit log, which contains the actions of operators.
import { useState } from 'preact/hooks'
import { api, withQuery } from '../api/client.ts'
import type { Audit } from '../api/types.ts'
import { actionNames, actions, changesInWords } from '../language/actions.ts'
import { useSpeech } from '../language/language.tsx'
import { useLoaded } from '../parts/load.ts'
import { Moment } from '../parts/moment.tsx'
import { Badge, Empty, Show } from '../parts/states.tsx'
import { type Column, Paging, Table } from '../parts/table.tsx'
import { Value, visible } from '../parts/value.tsx'

type Entry = Audit['entries'][number]

const noFilter = { operator: '', user_id: '', action: '', from: '', to: '' }

export function AuditPage() {
  const { t, say } = useSpeech()
  const [typed, setTyped] = useState(noFilter)
  const [filter, setFilter] = useState(noFilter)
  const [cursor, setCursor] = useState<string>()
  const path = withQuery('/audit', { ...filter, cursor })
  const loaded = useLoaded(path, () => api<Audit>('GET', path))
  const apply = (event: Event) => {
    event.preventDefault()
    const { operator, user_id, action, from, to } = typed
    setFilter({
      operator: operator.trim(),
      user_id: user_id.trim(),
      action,
      from: startOf(from, 0),
      to: startOf(to, 1),
    })
    setCursor(undefined)
    loaded.reload()
  }
  /** Returns the properties of the input or select that edits one filter. */
  const field = (name: keyof typeof noFilter) => ({
    value: typed[name],
    onInput: (event: { currentTarget: { value: string } }) =>
      setTyped({ ...typed, [name]: event.currentTarget.value }),
  })
  const isFiltered = Object.values(filter).some(value => value !== '')
  return (
    <>
      <h1>{t('audit')}</h1>
      <search>
        <form class="line" onSubmit={apply}>
          <label>
            {t('operator')}
            <input spellcheck={false} {...field('operator')} />
          </label>
          <label>
            {t('action')}
            <select {...field('action')}>
              <option value="">{t('any')}</option>
              {actions.map(action => (
                <option key={action} value={action}>
                  {say(actionNames[action])}
                </option>
              ))}
            </select>
          </label>
          <label>
            {t('userId')}
            <input inputMode="numeric" pattern="[0-9]*" size={8} {...field('user_id')} />
          </label>
          <label>
            {t('from')}
            <input type="date" max="2999-12-31" {...field('from')} />
          </label>
          <label>
            {t('to')}
            <input type="date" max="2999-12-31" {...field('to')} />
          </label>
          <button type="submit">{t('applyFilter')}</button>
        </form>
      </search>
      <Show loaded={loaded}>
        {({ entries, next_cursor }) => (
          <>
            {entries.length === 0 ? (
              <Empty>{t(isFiltered ? 'noAudit' : 'noHistory')}</Empty>
            ) : (
              <AuditTable entries={entries} />
            )}
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

/** @param isOfOneUser whether all entries are about one user; the table then has no column for the user */
export function AuditTable({ entries, isOfOneUser }: { entries: readonly Entry[]; isOfOneUser?: boolean }) {
  const { t } = useSpeech()
  const user: Column<Entry> = { title: t('user'), cell: entry => <Concerned entry={entry} /> }
  return (
    <Table
      caption={t('audit')}
      rows={entries}
      keyOf={({ id }) => id}
      columns={[
        { title: t('time'), cell: ({ at }) => <Moment at={at} /> },
        {
          title: t('operator'),
          cell: ({ operator, channel }) => (
            <>
              <Value text={operator} />
              {channel !== null && <div class="quiet">{t(channel)}</div>}
            </>
          ),
        },
        { title: t('action'), cell: entry => <Done entry={entry} /> },
        ...(isOfOneUser ? [] : [user]),
        {
          title: t('result'),
          cell: ({ status }) =>
            status < 400 ? (
              <Badge tone="good">{t('succeeded')}</Badge>
            ) : (
              <Badge tone="bad">{t('refusedWith', { status })}</Badge>
            ),
        },
      ]}
    />
  )
}

function Done({ entry }: { entry: Entry }) {
  const speech = useSpeech()
  const { action, method, route } = entry
  const changes = changesInWords(entry, speech)
  return (
    <>
      {action === null ? <Value text={`${method} ${route}`} mono /> : speech.say(actionNames[action])}
      {changes.map(change => (
        <div key={change} class="quiet">
          {visible(change)}
        </div>
      ))}
    </>
  )
}

function Concerned({ entry: { user_id, email } }: { entry: Entry }) {
  const { t } = useSpeech()
  if (user_id === null) return <>–</>
  return (
    <>
      <a href={`#users/${user_id}`}>{email === null ? user_id : <Value text={email} />}</a>
      <div class="quiet">{email === null ? t('userDeleted') : `${t('id')} ${user_id}`}</div>
    </>
  )
}

/**
 * @param day the value of a date input, in the browser's time zone
 * @param later the number of days to add
 * @returns the start of the resulting day in ISO 8601; an empty string if `day` is empty
 */
function startOf(day: string, later: number): string {
  const [year, month, date] = day.split('-').map(Number)
  if (year === undefined || month === undefined || date === undefined) return ''
  return new Date(year, month - 1, date + later).toISOString()
}
