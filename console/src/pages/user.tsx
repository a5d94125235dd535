// One user: record, use, sessions, key, webhook, audit, and what may be done.
import type { ComponentChildren } from 'preact'
import { type AuditEntry, ask, type Plan, query, type Role, type UserDetails } from '../api.ts'
import { number, t, time, type Word } from '../language.ts'
import { Loading, Mark, Outside, Table, useConfirm, useLoad } from '../ui.tsx'
import { AuditTable } from './audit.tsx'

const plans: Plan[] = ['free', 'premium', 'pro']

export function UserPage({ id, may }: { id: string; may: Role }) {
  const path = `/admin/v1/users/${encodeURIComponent(id)}`
  const user = useLoad(path, signal => ask<UserDetails>('GET', path, undefined, signal))
  const audit = useLoad(`audit ${path}`, async () =>
    may === 'billing'
      ? { entries: [] }
      : ask<{ entries: AuditEntry[] }>('GET', `/admin/v1/audit${query({ user_id: id })}`),
  )
  const { confirm, dialog } = useConfirm(() => {
    user.reload()
    audit.reload()
  })
  const helps = may === 'all' || may === 'support'

  return (
    <>
      <p>
        <a href="#/users">← {t('users')}</a>
      </p>
      {dialog}
      <Loading of={user}>
        {data => {
          /** A button that asks first. */
          const act = (
            title: Word,
            text: Word,
            method: string,
            below: string,
            body?: object,
            isDangerous = false,
          ) => (
            <button
              type="button"
              class={isDangerous ? 'danger quiet' : 'quiet'}
              onClick={() =>
                confirm({
                  title: t(title),
                  text: t(text, data.email),
                  isDangerous,
                  run: () => ask(method, path + below, body),
                })
              }
            >
              {t(title)}
            </button>
          )
          const changesPlan = may === 'all' || may === 'billing'
          return (
            <>
              <h1>
                <Outside>{data.email}</Outside>
              </h1>
              <dl class="tiles">
                <Tile title={`N° ${data.id}`}>
                  <Mark good={data.is_active === 1}>{t(data.is_active === 1 ? 'active' : 'inactive')}</Mark>
                  {may === 'all' &&
                    (data.is_active === 1
                      ? act('deactivate', 'deactivateText', 'PATCH', '', { is_active: 0 }, true)
                      : act('activate', 'activateText', 'PATCH', '', { is_active: 1 }))}
                </Tile>
                <Tile title={t('plan')}>
                  <strong>{data.plan}</strong>
                  {changesPlan && (
                    <label>
                      {t('changePlan')}
                      <select
                        value={data.plan}
                        onChange={event => {
                          const plan = event.currentTarget.value
                          event.currentTarget.value = data.plan
                          confirm({
                            title: t('changePlan'),
                            text: t('planText', data.email, plan),
                            run: () => ask('PATCH', path, { plan }),
                          })
                        }}
                      >
                        {plans.map(plan => (
                          <option key={plan}>{plan}</option>
                        ))}
                      </select>
                    </label>
                  )}
                </Tile>
                <Tile title={t('email')}>
                  <Mark good={data.email_verified_at !== null}>
                    {t(data.email_verified_at === null ? 'unverified' : 'verified')}
                  </Mark>
                  {may === 'all' &&
                    (data.email_verified_at === null
                      ? act('verify', 'verifyText', 'PATCH', '', { email_verified: true })
                      : act('unverify', 'unverifyText', 'PATCH', '', { email_verified: false }))}
                  {helps && act('sendReset', 'sendResetText', 'POST', '/send-reset')}
                </Tile>
                <Tile title={t('today')}>
                  <strong>{number(data.daily_usage)}</strong>{' '}
                  <span class="muted">{data.last_usage_date ?? ''}</span>
                  {helps && act('resetUsage', 'resetUsageText', 'POST', '/reset-usage')}
                </Tile>
                {data.api_token !== undefined && (
                  <Tile title={t('apiKey')}>
                    {data.api_token === null ? (
                      <span class="muted">{t('none')}</span>
                    ) : (
                      <>
                        <span>{t('since', time(data.api_token.created_at))}</span>
                        <span class="muted">{t('lastUsed', time(data.api_token.last_used_at))}</span>
                        {helps && act('revokeKey', 'revokeKeyText', 'DELETE', '/api-token', undefined, true)}
                      </>
                    )}
                  </Tile>
                )}
                {data.webhook !== undefined && (
                  <Tile title={t('webhook')}>
                    {data.webhook === null ? (
                      <span class="muted">{t('none')}</span>
                    ) : (
                      <>
                        <Outside code>{data.webhook.url}</Outside>
                        {helps &&
                          act('removeWebhook', 'removeWebhookText', 'DELETE', '/webhook', undefined, true)}
                      </>
                    )}
                  </Tile>
                )}
                <Tile title={t('created')}>{time(data.created_at)}</Tile>
              </dl>
              <p class="row">
                {may !== 'billing' && (
                  <a class="button quiet" href={`#/routes/${data.id}`}>
                    {t('whyRefused')}
                  </a>
                )}
                {may === 'all' && (
                  <button
                    type="button"
                    class="danger quiet"
                    onClick={() =>
                      confirm({
                        title: t('remove'),
                        text: t('removeText', data.email),
                        isDangerous: true,
                        async run() {
                          await ask('DELETE', path)
                          location.hash = '#/users'
                        },
                      })
                    }
                  >
                    {t('remove')}
                  </button>
                )}
              </p>
              {data.sessions !== undefined && (
                <>
                  <h2>{t('sessions')}</h2>
                  <Table
                    head={[t('sessions'), t('created'), t('expires'), t('action')]}
                    label={t('sessions')}
                  >
                    {data.sessions.map(session => (
                      <tr key={session.id}>
                        <td>
                          <Outside code>{session.id}</Outside>
                        </td>
                        <td>{time(session.created_at)}</td>
                        <td>{time(session.expires_at)}</td>
                        <td>
                          {helps &&
                            act(
                              'endSession',
                              'endSessionText',
                              'DELETE',
                              `/sessions/${encodeURIComponent(session.id)}`,
                              undefined,
                              true,
                            )}
                        </td>
                      </tr>
                    ))}
                  </Table>
                  {helps &&
                    data.sessions.length > 0 &&
                    act('endSessions', 'endSessionsText', 'DELETE', '/sessions', undefined, true)}
                </>
              )}
              {may !== 'billing' && (
                <>
                  <h2>{t('audit')}</h2>
                  <Loading of={audit}>{({ entries }) => <AuditTable entries={entries} />}</Loading>
                </>
              )}
            </>
          )
        }}
      </Loading>
    </>
  )
}

function Tile({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="card">
      <dt>{title}</dt>
      <dd class="stack">{children}</dd>
    </div>
  )
}
