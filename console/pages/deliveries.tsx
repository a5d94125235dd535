// Shows deliveries of alerts to webhooks, and mails to users.
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { can } from '../api/abilities.ts'
import { api, withQuery } from '../api/client.ts'
import type { Deliveries, Delivery, Mails, Role } from '../api/types.ts'
import { useSpeech } from '../language/language.tsx'
import { Action, Done } from '../parts/action.tsx'
import { type Loaded, useLoaded } from '../parts/load.ts'
import { Moment } from '../parts/moment.tsx'
import { Badge, Empty, Show } from '../parts/states.tsx'
import { Paging, Table } from '../parts/table.tsx'
import { Value } from '../parts/value.tsx'

const tones = { pending: 'warn', delivered: 'good', sent: 'good', failed: 'bad', dropped: 'plain' } as const
type Status = keyof typeof tones

export function DeliveriesPage({ role }: { role: Role }) {
  const { t } = useSpeech()
  return (
    <>
      <h1>{t('deliveries')}</h1>
      <Webhooks role={role} />
      <MailLog />
    </>
  )
}

function Webhooks({ role }: { role: Role }) {
  const { t } = useSpeech()
  const [done, setDone] = useState<string>()
  const log = useLog<Deliveries>('/deliveries')
  const onDone = (what: string) => {
    setDone(what)
    log.loaded.reload()
  }
  return (
    <Log
      title={t('webhooks')}
      statuses={['pending', 'delivered', 'failed', 'dropped']}
      log={log}
      empty={t(log.status === '' ? 'noDeliveries' : 'noMatchingDeliveries')}
      rowsOf={({ deliveries }) => deliveries}
      above={<Done what={done} />}
    >
      {rows => (
        <Table
          caption={t('webhooks')}
          rows={rows}
          keyOf={({ id }) => id}
          columns={[
            { title: t('time'), cell: ({ created_at }) => <Moment at={created_at} /> },
            { title: t('user'), cell: ({ user_id }) => <a href={`#users/${user_id}`}>{user_id}</a> },
            { title: t('type'), cell: ({ type }) => <Value text={type ?? '–'} mono /> },
            { title: t('status'), cell: ({ status }) => <Badge tone={tones[status]}>{t(status)}</Badge> },
            { title: t('attempts'), cell: ({ attempts }) => attempts, isNumber: true },
            {
              title: t('answer'),
              cell: one => <Value text={one.response_status ?? one.error ?? '–'} mono />,
            },
            {
              title: t('next'),
              cell: one => (one.next_attempt_at === null ? '–' : <Moment at={one.next_attempt_at} />),
            },
            ...(can(role, 'retry')
              ? [{ title: t('actions'), cell: (one: Delivery) => <Retry delivery={one} onDone={onDone} /> }]
              : []),
          ]}
        />
      )}
    </Log>
  )
}

function Retry({ delivery: { id, status }, onDone }: { delivery: Delivery; onDone(what: string): void }) {
  const { t } = useSpeech()
  if (status !== 'failed' && status !== 'pending') return <>–</>
  return (
    <Action
      label={t('retryDelivery')}
      will={() => t('retryDeliveryWill', { value: id })}
      did={() => t('retryDeliveryDid', { value: id })}
      run={() => api('POST', `/deliveries/${id}/retry`)}
      onDone={onDone}
    />
  )
}

function MailLog() {
  const { t } = useSpeech()
  const log = useLog<Mails>('/mails')
  return (
    <Log
      title={t('mails')}
      statuses={['pending', 'sent', 'failed']}
      log={log}
      empty={t(log.status === '' ? 'noMails' : 'noMatchingMails')}
      rowsOf={({ mails }) => mails}
    >
      {rows => (
        <Table
          caption={t('mails')}
          rows={rows}
          keyOf={({ id }) => id}
          columns={[
            { title: t('time'), cell: ({ created_at }) => <Moment at={created_at} /> },
            { title: t('user'), cell: ({ user_id }) => <a href={`#users/${user_id}`}>{user_id}</a> },
            { title: t('kind'), cell: ({ kind }) => <Value text={kind} mono /> },
            { title: t('address'), cell: ({ address }) => <Value text={address} /> },
            { title: t('status'), cell: ({ status }) => <Badge tone={tones[status]}>{t(status)}</Badge> },
            { title: t('attempts'), cell: ({ attempts }) => attempts, isNumber: true },
            { title: t('next'), cell: ({ due_at }) => (due_at === null ? '–' : <Moment at={due_at} />) },
          ]}
        />
      )}
    </Log>
  )
}

interface LogState<Page> {
  readonly loaded: Loaded<Page>
  readonly cursor: string | undefined
  setCursor(cursor: string | undefined): void
  readonly status: string
  setStatus(status: string): void
}

function useLog<Page>(base: string): LogState<Page> {
  const [status, setStatus] = useState('')
  const [cursor, setCursor] = useState<string>()
  const path = withQuery(base, { status, cursor })
  return {
    loaded: useLoaded(path, () => api<Page>('GET', path), 10_000),
    cursor,
    setCursor,
    status,
    setStatus,
  }
}

function Log<Page extends { next_cursor: string | null }, Row>({
  title,
  statuses,
  log: { loaded, cursor, setCursor, status, setStatus },
  empty,
  rowsOf,
  above,
  children,
}: {
  title: string
  statuses: readonly Status[]
  log: LogState<Page>
  empty: string
  rowsOf(page: Page): readonly Row[]
  above?: ComponentChildren
  children(rows: readonly Row[]): ComponentChildren
}) {
  const { t } = useSpeech()
  const choose = (event: { currentTarget: HTMLSelectElement }) => {
    setStatus(event.currentTarget.value)
    setCursor(undefined)
  }
  return (
    <section>
      <div class="title">
        <h2>{title}</h2>
        <label class="inline">
          {t('status')}
          <select value={status} onChange={choose}>
            <option value="">{t('all')}</option>
            {statuses.map(one => (
              <option key={one} value={one}>
                {t(one)}
              </option>
            ))}
          </select>
        </label>
      </div>
      {above}
      <Show loaded={loaded}>
        {page => (
          <>
            {rowsOf(page).length === 0 ? <Empty>{empty}</Empty> : children(rowsOf(page))}
            <Paging
              cursor={cursor}
              next={page.next_cursor}
              onGo={setCursor}
              texts={{ more: t('more'), first: t('first') }}
            />
          </>
        )}
      </Show>
    </section>
  )
}
