// What an operator may do to one user.
import { can } from '../api/abilities.ts'
import { api } from '../api/client.ts'
import { saveJson } from '../api/save.ts'
import type { Role, UserDetails } from '../api/types.ts'
import { type Key, useSpeech } from '../language/language.tsx'
import { Action, type ActionProps } from '../parts/action.tsx'
import { plans } from './users.tsx'

interface Props {
  readonly user: UserDetails
  readonly role: Role
  onDone(what: string): void
}

/** Actions whose texts are `name`, `nameWill` and `nameDid`. */
type Name = { [Of in Key]: `${Of}Will` extends Key ? (`${Of}Did` extends Key ? Of : never) : never }[Key]

export function RecordActions({ user, role, onDone, onDeleted }: Props & { onDeleted(what: string): void }) {
  const { t } = useSpeech()
  const { id, email, plan, is_active, email_verified_at } = user
  const action = actionsFor(useSpeech().t, email, onDone)
  const patch = (body: object) => api('PATCH', `/users/${id}`, body)
  const fileName = `user-${id}.json`
  const mayChange = can(role, 'change-user')
  return (
    <div class="buttons">
      {can(role, 'change-plan') && (
        <Action
          {...action('changePlan', ({ value }) => patch({ plan: value }))}
          fields={[
            { name: 'value', label: t('plan'), type: 'select', options: plans.filter(one => one !== plan) },
          ]}
        />
      )}
      {can(role, 'manage-access') && (
        <>
          <Action {...action('resetUsage', () => api('POST', `/users/${id}/reset-usage`))} />
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
      {mayChange && (
        <>
          {email_verified_at === null ? (
            <Action {...action('verify', () => patch({ email_verified: true }))} />
          ) : (
            <Action {...action('unverify', () => patch({ email_verified: false }))} />
          )}
          <Action
            {...action('changeEmail', ({ value }) => patch({ email: value }))}
            fields={[{ name: 'value', label: t('email'), type: 'email' }]}
          />
          <Action
            {...action('setPassword', ({ password }) => api('POST', `/users/${id}/password`, { password }))}
            fields={[{ name: 'password', label: t('password'), type: 'password' }]}
          />
          {is_active ? (
            <Action {...action('deactivate', () => patch({ is_active: 0 }))} isGrave />
          ) : (
            <Action {...action('activate', () => patch({ is_active: 1 }))} />
          )}
          <Action {...action('deleteUser', () => api('DELETE', `/users/${id}`))} onDone={onDeleted} isGrave />
        </>
      )}
    </div>
  )
}

export function AccessActions({ user, role, onDone }: Props) {
  const { id, email, sessions = [], api_token, webhook } = user
  const action = actionsFor(useSpeech().t, email, onDone)
  if (!can(role, 'manage-access')) return null
  const remove = (what: string) => () => api('DELETE', `/users/${id}/${what}`)
  return (
    <div class="buttons">
      {sessions.length > 0 && <Action {...action('endSessions', remove('sessions'))} isGrave />}
      {api_token != null && <Action {...action('revokeKey', remove('api-token'))} isGrave />}
      {webhook != null && <Action {...action('removeWebhook', remove('webhook'))} isGrave />}
    </div>
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
