// Shows the actions for one user. Frequent actions are a row of buttons. Dangerous actions have a separate section.
import type { JSX } from 'preact'
import { can } from '../api/abilities.ts'
import { api } from '../api/client.ts'
import { saveJson } from '../api/save.ts'
import type { Plans, Role, UserDetails } from '../api/types.ts'
import { type Key, useSpeech } from '../language/language.tsx'
import { Action, type ActionProps } from '../parts/action.tsx'
import { visible } from '../parts/value.tsx'
import { configuredNames, hasDailyUses } from './plans.tsx'

interface Props {
  readonly user: UserDetails
  readonly role: Role
  onDone(what: string): void
}

/** The names of actions. For example, the action `verify` has the texts `verify`, `verifyWill` and `verifyDid`. */
type Name = { [Of in Key]: `${Of}Will` extends Key ? (`${Of}Did` extends Key ? Of : never) : never }[Key]

export function FrequentActions({
  user,
  plans,
  role,
  onDone,
}: Props & { readonly plans: Plans | undefined }) {
  const { t } = useSpeech()
  const { id, email, plan, is_active, email_verified_at } = user
  const action = actionsFor(t, email, onDone)
  const patch = (body: object) => api('PATCH', `/users/${id}`, body)
  const resetDailyUses = () => api('POST', `/users/${id}/reset-usage`, { quota: 'free_daily' })
  const fileName = `user-${id}.json`
  return (
    <div class="buttons">
      {can(role, 'change-plan') && (
        <Action
          {...action('changePlan', ({ value }) => patch({ plan: value }))}
          fields={[
            {
              name: 'value',
              label: t('plan'),
              type: 'select',
              options: configuredNames(plans).filter(one => one !== plan),
            },
          ]}
        />
      )}
      {can(role, 'manage-access') && (
        <>
          {hasDailyUses(plans) && <Action {...action('resetUsage', resetDailyUses)} />}
          {Boolean(is_active) && (
            <Action {...action('sendReset', () => api('POST', `/users/${id}/send-reset`))} />
          )}
        </>
      )}
      {can(role, 'export') && (
        <Action
          {...action('exportUser', async () => saveJson(fileName, await api('GET', `/users/${id}/export`)))}
          did={() => t('exportUserDid', { value: fileName })}
        />
      )}
      {can(role, 'change-user') && (
        <>
          {email_verified_at === null ? (
            <Action {...action('verify', () => patch({ email_verified: true }))} />
          ) : (
            <Action {...action('unverify', () => patch({ email_verified: false }))} />
          )}
          {!is_active && <Action {...action('activate', () => patch({ is_active: 1 }))} />}
        </>
      )}
    </div>
  )
}

/** Shows nothing if the role of the operator allows none of these actions. */
export function DangerousActions({
  user,
  role,
  onDone,
  onDeleted,
}: Props & { onDeleted(what: string): void }): JSX.Element | null {
  const { t } = useSpeech()
  const { id, email, is_active, sessions = [], api_token, api_keys = [], webhook } = user
  const action = actionsFor(t, email, onDone)
  const patch = (body: object) => api('PATCH', `/users/${id}`, body)
  const remove = (path: string) => () => api('DELETE', `/users/${id}${path}`)
  const ofAccess: ActionProps[] = [
    ...(sessions.length > 0 ? [action('endSessions', remove('/sessions'))] : []),
    ...(api_token != null ? [action('revokeApiToken', remove('/api-token'))] : []),
    // The page lists only the newest keys. Even if all listed keys are revoked, an older key may be live. So the action
    // is shown if any key is listed.
    ...(api_keys.length > 0 ? [action('revokeKeys', remove('/keys'))] : []),
    ...(webhook != null ? [action('removeWebhook', remove('/webhook'))] : []),
  ]
  const ofRecord: ActionProps[] = [
    {
      ...action('changeEmail', ({ value }) => patch({ email: value })),
      fields: [{ name: 'value', label: t('newEmail'), type: 'email' }],
    },
    {
      ...action('setPassword', ({ password }) => api('POST', `/users/${id}/password`, { password })),
      fields: [{ name: 'password', label: t('newPassword'), type: 'password' }],
    },
    ...(is_active ? [action('deactivate', () => patch({ is_active: 0 }))] : []),
    { ...action('deleteUser', remove('')), onDone: onDeleted, typeToConfirm: email },
  ]
  const all = [...(can(role, 'manage-access') ? ofAccess : []), ...(can(role, 'change-user') ? ofRecord : [])]
  if (all.length === 0) return null
  return (
    <section class="panel danger">
      <h2>{t('dangerous')}</h2>
      <ul class="rows">
        {all.map(one => (
          <li key={one.label}>
            <span>{visible(one.will({}))}</span>
            <Action {...one} isGrave />
          </li>
        ))}
      </ul>
    </section>
  )
}

function actionsFor(t: ReturnType<typeof useSpeech>['t'], email: string, onDone: (what: string) => void) {
  return (name: Name, run: ActionProps['run']): ActionProps => ({
    label: t(name),
    will: ({ value = '' }) => t(`${name}Will`, { email, value }),
    did: ({ value = '' }) => t(`${name}Did`, { email, value }),
    run,
    onDone,
  })
}
