// One user: the record, the use, what the account is reached by, and what was done to it.
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { can } from '../api/abilities.ts'
import { api } from '../api/client.ts'
import type { Audit, Role, UserDetails } from '../api/types.ts'
import { useSpeech } from '../language/language.tsx'
import { Action, Done } from '../parts/action.tsx'
import { useLoaded } from '../parts/load.ts'
import { Moment } from '../parts/moment.tsx'
import { Badge, Empty, Show } from '../parts/states.tsx'
import { Value } from '../parts/value.tsx'
import { AuditTable } from './audit.tsx'
import { ExplainBox } from './explain-box.tsx'
import { AccessActions, RecordActions } from './user-actions.tsx'
import { usesToday } from './users.tsx'

export function UserPage({ id, role }: { id: string; role: Role }) {
  const { t } = useSpeech()
  const [done, setDone] = useState<string>()
  const [isDeleted, setDeleted] = useState(false)
  const user = useLoaded(`user ${id}`, () => api<UserDetails>('GET', `/users/${id}`))
  const audit = useLoaded(`audit ${id}`, async () =>
    can(role, 'see-gateway') ? api<Audit>('GET', `/audit?user_id=${id}`) : undefined,
  )
  const onDone = (what: string) => {
    setDone(what)
    user.reload()
    audit.reload()
  }
  const onDeleted = (what: string) => {
    setDone(what)
    setDeleted(true)
    audit.reload()
  }
  return (
    <>
      <p>
        <a href="#users">← {t('backToUsers')}</a>
      </p>
      <Done what={done} />
      {!isDeleted && (
        <Show loaded={user}>
          {details => (
            <>
              <h1>
                <Value text={details.email} />
              </h1>
              <div class="columns">
                <Panel title={t('record')}>
                  <RecordFacts user={details} />
                  <RecordActions user={details} role={role} onDone={onDone} onDeleted={onDeleted} />
                </Panel>
                {details.sessions !== undefined && (
                  <Panel title={t('access')}>
                    <Access user={details} role={role} onDone={onDone} />
                  </Panel>
                )}
              </div>
              {can(role, 'explain') && <ExplainBox title={t('explainFor')} userId={details.id} />}
            </>
          )}
        </Show>
      )}
      {can(role, 'see-gateway') && (
        <Panel title={t('history')}>
          <Show loaded={audit}>
            {found =>
              found === undefined || found.entries.length === 0 ? (
                <Empty>{t('noAudit')}</Empty>
              ) : (
                <AuditTable entries={found.entries} />
              )
            }
          </Show>
        </Panel>
      )}
    </>
  )
}

function Panel({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="panel">
      <h2>{title}</h2>
      {children}
    </section>
  )
}

function RecordFacts({ user }: { user: UserDetails }) {
  const { t, number } = useSpeech()
  const { id, plan, is_active, created_at, email_verified_at, subscription } = user
  return (
    <dl>
      <dt>Id</dt>
      <dd>{id}</dd>
      <dt>{t('status')}</dt>
      <dd>
        <Badge tone={is_active ? 'good' : 'bad'}>{t(is_active ? 'active' : 'inactive')}</Badge>
      </dd>
      <dt>{t('plan')}</dt>
      <dd>
        <Badge tone="plain">{plan}</Badge>
      </dd>
      <dt>{t('verified')}</dt>
      <dd>{email_verified_at === null ? t('no') : <Moment at={email_verified_at} />}</dd>
      <dt>{t('usesToday')}</dt>
      <dd>{number(usesToday(user))}</dd>
      <dt>{t('created')}</dt>
      <dd>
        <Moment at={created_at} />
      </dd>
      <dt>{t('subscription')}</dt>
      <dd>
        {subscription === null ? (
          t('none')
        ) : (
          <>
            {subscription.plan}, {t('since')} <Moment at={subscription.created_at} />
          </>
        )}
      </dd>
    </dl>
  )
}

function Access({ user, role, onDone }: { user: UserDetails; role: Role; onDone(what: string): void }) {
  const { t } = useSpeech()
  const { id, email, sessions = [], api_token, webhook } = user
  return (
    <>
      <h3>{t('sessions')}</h3>
      {sessions.length === 0 && <p class="quiet">{t('noSessions')}</p>}
      <ul class="rows">
        {sessions.map(session => (
          <li key={session.id}>
            <span>
              <Value text={session.id} mono />
              <br />
              <span class="quiet">
                {t('since')} <Moment at={session.created_at} /> {t('until')}{' '}
                <Moment at={session.expires_at} />
              </span>
            </span>
            {can(role, 'manage-access') && (
              <Action
                label={t('endSession')}
                will={() => t('endSessionWill', { email, value: session.id })}
                did={() => t('endSessionDid')}
                run={() => api('DELETE', `/users/${id}/sessions/${encodeURIComponent(session.id)}`)}
                onDone={onDone}
              />
            )}
          </li>
        ))}
      </ul>
      <h3>{t('apiKey')}</h3>
      {api_token == null ? (
        <p class="quiet">{t('noKey')}</p>
      ) : (
        <p>
          {t('since')} <Moment at={api_token.created_at} />, {t('lastUsed')}{' '}
          {api_token.last_used_at === null ? t('never') : <Moment at={api_token.last_used_at} />}
        </p>
      )}
      <h3>{t('webhook')}</h3>
      {webhook == null ? (
        <p class="quiet">{t('noWebhook')}</p>
      ) : (
        <p>
          <Value text={webhook.url} mono /> {t('since')} <Moment at={webhook.created_at} />
        </p>
      )}
      <AccessActions user={user} role={role} onDone={onDone} />
    </>
  )
}
