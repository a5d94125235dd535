// What was to reach users: alerts to their webhooks, and mails.
import { useState } from 'preact/hooks'
import { ask, type Delivery, type Mail, query, type Role } from '../api.ts'
import { t, time } from '../language.ts'
import { Loading, Mark, Outside, Table, useConfirm, useList } from '../ui.tsx'

export function DeliveriesPage({ may }: { may: Role }) {
  return (
    <>
      <h1>{t('deliveries')}</h1>
      <Deliveries may={may} />
      <Mails />
    </>
  )
}

function Status({
  value,
  onChange,
  all,
}: {
  value: string
  onChange: (value: string) => void
  all: string[]
}) {
  return (
    <label>
      {t('state')}
      <select value={value} onInput={event => onChange(event.currentTarget.value)}>
        <option value="">{t('anyStatus')}</option>
        {all.map(name => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  )
}

const isGood = (status: string) =>
  status === 'pending' ? undefined : status === 'delivered' || status === 'sent'

function Deliveries({ may }: { may: Role }) {
  const [status, setStatus] = useState('')
  const { first, rows, more } = useList(`deliveries ${status}`, async cursor => {
    const path = `/admin/v1/deliveries${query({ status, cursor })}`
    const found = await ask<{ deliveries: Delivery[]; next_cursor: string | null }>('GET', path)
    return [found.deliveries, found.next_cursor]
  })
  const { confirm, dialog } = useConfirm(first.reload)
  const mayRetry = may === 'all' || may === 'support'
  return (
    <section>
      <h2>{t('webhooks')}</h2>
      {dialog}
      <div class="row">
        <Status value={status} onChange={setStatus} all={['pending', 'delivered', 'failed', 'dropped']} />
      </div>
      <Loading of={first}>
        {() => (
          <>
            <Table
              head={[
                t('when'),
                t('user'),
                t('kind'),
                t('state'),
                t('attempts'),
                t('answer'),
                t('next'),
                t('action'),
              ]}
              label={t('webhooks')}
            >
              {rows.map(row => (
                <tr key={row.id}>
                  <td>{time(row.created_at)}</td>
                  <td class="number">
                    <a href={`#/users/${row.user_id}`}>{row.user_id}</a>
                  </td>
                  <td>
                    <Outside>{row.type ?? '–'}</Outside>
                  </td>
                  <td>
                    <Mark good={isGood(row.status)}>{row.status}</Mark>
                  </td>
                  <td class="number">{row.attempts}</td>
                  <td>
                    <Outside>{row.error ?? row.response_status ?? '–'}</Outside>
                  </td>
                  <td>{time(row.next_attempt_at)}</td>
                  <td>
                    {mayRetry && (row.status === 'failed' || row.status === 'pending') && (
                      <button
                        type="button"
                        class="quiet"
                        onClick={() =>
                          confirm({
                            title: t('retryNow'),
                            text: t('retryText'),
                            run: () => ask('POST', `/admin/v1/deliveries/${row.id}/retry`),
                          })
                        }
                      >
                        {t('retryNow')}
                      </button>
                    )}
                  </td>
                </tr>
              ))}
            </Table>
            {more}
          </>
        )}
      </Loading>
    </section>
  )
}

function Mails() {
  const [status, setStatus] = useState('')
  const { first, rows, more } = useList(`mails ${status}`, async cursor => {
    const path = `/admin/v1/mails${query({ status, cursor })}`
    const found = await ask<{ mails: Mail[]; next_cursor: string | null }>('GET', path)
    return [found.mails, found.next_cursor]
  })
  return (
    <section>
      <h2>{t('mails')}</h2>
      <div class="row">
        <Status value={status} onChange={setStatus} all={['pending', 'sent', 'failed']} />
      </div>
      <Loading of={first}>
        {() => (
          <>
            <Table
              head={[t('when'), t('user'), t('kind'), t('email'), t('state'), t('attempts'), t('next')]}
              label={t('mails')}
            >
              {rows.map(row => (
                <tr key={row.id}>
                  <td>{time(row.created_at)}</td>
                  <td class="number">
                    {row.user_id === null ? '–' : <a href={`#/users/${row.user_id}`}>{row.user_id}</a>}
                  </td>
                  <td>{row.kind}</td>
                  <td>
                    <Outside>{row.address}</Outside>
                  </td>
                  <td>
                    <Mark good={isGood(row.status)}>{row.status}</Mark>
                  </td>
                  <td class="number">{row.attempts}</td>
                  <td>{row.status === 'pending' ? time(row.due_at) : time(row.sent_at)}</td>
                </tr>
              ))}
            </Table>
            {more}
          </>
        )}
      </Loading>
    </section>
  )
}
