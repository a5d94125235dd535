// Shows one user: account, uses, sessions, API keys, identities, actions and audit.
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { can } from '../api/abilities.ts'
import { api } from '../api/client.ts'
import { deviceOf } from '../api/device.ts'
import type { Audit, Plans, Role, UserDetails } from '../api/types.ts'
import { type Speech, useSpeech } from '../language/language.tsx'
import { Action, Done } from '../parts/action.tsx'
import { useLoaded } from '../parts/load.ts'
import { Moment, MomentOrNever } from '../parts/moment.tsx'
import { Badge, Empty, FailureWithRetry, Show } from '../parts/states.tsx'
import { Value } from '../parts/value.tsx'
import { AuditTable } from './audit.tsx'
import { ExplainBox } from './explain-box.tsx'
import { hasDailyUses, PlanBadge, usePlans } from './plans.tsx'
import { Quotas } from './quotas.tsx'
import { DangerousActions, FrequentActions } from './user-actions.tsx'
import { UserIdentities } from './user-identities.tsx'
import { UserKeys } from './user-keys.tsx'
import { useDailyLimit, usesInWords } from './uses.ts'

export function UserPage({ id, role }: { id: string; role: Role }) {
  const { t } = useSpeech()
  const [done, setDone] = useState<string>()
  const [isDeleted, setDeleted] = useState(false)
  const user = useLoaded(`user ${id}`, () => api<UserDetails>('GET', `/users/${id}`))
  const plans = usePlans()
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
              <FailureWithRetry of={plans} />
              <div class="columns">
                <div>
                  <Panel title={t('record')}>
                    <RecordFacts user={details} plans={plans.data} role={role} />
                    <FrequentActions user={details} plans={plans.data} role={role} onDone={onDone} />
                  </Panel>
                  {details.usage.length > 0 && (
                    <Panel title={t('quotas')}>
                      <Quotas user={details} role={role} onDone={onDone} />
                    </Panel>
                  )}
                </div>
                {details.sessions !== undefined && (
                  <Panel title={t('access')}>
                    <Access user={details} role={role} onDone={onDone} />
                  </Panel>
                )}
              </div>
              {details.api_keys !== undefined && (
                <Panel title={t('apiKeys')}>
                  <UserKeys user={details} keys={details.api_keys} role={role} onDone={onDone} />
                </Panel>
              )}
              {details.identities !== undefined && details.identities.length > 0 && (
                <Panel title={t('identities')}>
                  <UserIdentities
                    user={details}
                    identities={details.identities}
                    role={role}
                    onDone={onDone}
                  />
                </Panel>
              )}
              <DangerousActions user={details} role={role} onDone={onDone} onDeleted={onDeleted} />
              {can(role, 'explain') && (
                <ExplainBox title={t('explainFor')} userId={details.id} plans={plans.data} />
              )}
            </>
          )}
        </Show>
      )}
      {can(role, 'see-gateway') && (
        <Panel title={t('history')}>
          <Show loaded={audit}>
            {found =>
              found === undefined || found.entries.length === 0 ? (
                <Empty>{t('noHistory')}</Empty>
              ) : (
                <AuditTable entries={found.entries} isOfOneUser />
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

interface RecordProps {
  readonly user: UserDetails
  readonly plans: Plans | undefined
  readonly role: Role
}

function RecordFacts({ user, plans, role }: RecordProps) {
  const speech = useSpeech()
  const { t } = speech
  const dailyLimit = useDailyLimit(role)
  const { id, plan, is_active, created_at, email_verified_at, subscription } = user
  return (
    <dl>
      <dt>{t('id')}</dt>
      <dd>{id}</dd>
      <dt>{t('status')}</dt>
      <dd>
        <Badge tone={is_active ? 'good' : 'bad'}>{t(is_active ? 'active' : 'inactive')}</Badge>
      </dd>
      <dt>{t('plan')}</dt>
      <dd>
        <PlanBadge plan={plan} plans={plans} />
      </dd>
      <dt>{t('verified')}</dt>
      <dd>{email_verified_at === null ? t('no') : <Moment at={email_verified_at} />}</dd>
      {hasDailyUses(plans) && (
        <>
          <dt>{t('usesToday')}</dt>
          <dd>{usesInWords(user, dailyLimit, speech)}</dd>
        </>
      )}
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
      <ul class="rows sessions">
        {sessions.map(session => (
          <li key={session.id}>
            <span>
              <Value text={deviceInWords(session.user_agent, t)} />
              <br />
              <span class="quiet">
                {t('signedIn')} <Moment at={session.created_at} />, {t('until')}{' '}
                <Moment at={session.expires_at} />
              </span>
              <br />
              <span class="quiet small">
                <Value text={session.id} mono />
              </span>
            </span>
            {can(role, 'manage-access') && (
              <Action
                label={t('endSession')}
                will={() => t('endSessionWill', { email, value: deviceInWords(session.user_agent, t) })}
                did={() => t('endSessionDid')}
                run={() => api('DELETE', `/users/${id}/sessions/${encodeURIComponent(session.id)}`)}
                onDone={onDone}
              />
            )}
          </li>
        ))}
      </ul>
      <h3>{t('apiToken')}</h3>
      {api_token == null ? (
        <p class="quiet">{t('noApiToken')}</p>
      ) : (
        <p>
          {t('since')} <Moment at={api_token.created_at} />, {t('lastUsed')}{' '}
          <MomentOrNever at={api_token.last_used_at} />
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
    </>
  )
}

function deviceInWords(userAgent: string | null, t: Speech['t']): string {
  const device = deviceOf(userAgent)
  if (device === undefined) return t('unknownDevice')
  const { browser, system } = device
  return system === undefined ? browser : t('deviceOn', { browser, system })
}
