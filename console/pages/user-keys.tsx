// Shows the API keys of a user. The operator can revoke each live key.
import { can } from '../api/abilities.ts'
import { api } from '../api/client.ts'
import type { ApiKey, Role, UserDetails } from '../api/types.ts'
import { useSpeech } from '../language/language.tsx'
import { Action } from '../parts/action.tsx'
import { Moment, MomentOrNever } from '../parts/moment.tsx'
import { Badge, Empty } from '../parts/states.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Value } from '../parts/value.tsx'

interface Props {
  readonly user: Pick<UserDetails, 'id' | 'email'>
  readonly keys: readonly ApiKey[]
  readonly role: Role
  onDone(what: string): void
}

export function UserKeys({ user: { id, email }, keys, role, onDone }: Props) {
  const { t } = useSpeech()
  if (keys.length === 0) return <Empty>{t('noApiKeys')}</Empty>
  const revocation: Column<ApiKey> = {
    title: t('actions'),
    cell: key =>
      stateOf(key) === 'live' && (
        <Action
          label={t('revokeKey')}
          will={() => t('revokeKeyWill', { email, value: key.name })}
          did={() => t('revokeKeyDid', { value: key.name })}
          run={() => api('DELETE', `/users/${id}/keys/${key.id}`)}
          onDone={onDone}
        />
      ),
  }
  return (
    <div class="keys">
      <Table
        caption={t('apiKeys')}
        rows={keys}
        keyOf={key => key.id}
        columns={[
          { title: t('name'), cell: key => <Name of={key} /> },
          { title: t('scopes'), cell: ({ scopes }) => <Scopes of={scopes} /> },
          { title: t('created'), cell: ({ created_at }) => <Moment at={created_at} /> },
          { title: t('expires'), cell: ({ expires_at }) => <MomentOrNever at={expires_at} /> },
          { title: t('lastUse'), cell: ({ last_used_at }) => <MomentOrNever at={last_used_at} /> },
          { title: t('status'), cell: key => <State of={key} /> },
          ...(can(role, 'manage-access') ? [revocation] : []),
        ]}
      />
    </div>
  )
}

/** Also shows the id of the key, because the audit contains only the id of a revoked key. */
function Name({ of: { id, name, prefix } }: { of: ApiKey }) {
  return (
    <>
      <Value text={name} />
      <div class="quiet">
        <Value text={`${prefix}…`} mono />
      </div>
      <div class="quiet small">
        <Value text={id} mono />
      </div>
    </>
  )
}

function Scopes({ of: scopes }: { of: ApiKey['scopes'] }) {
  const { t } = useSpeech()
  if (scopes === null) return <>{t('noLimit')}</>
  if (scopes.length === 0) return <>{t('none')}</>
  return <Value text={scopes.join(', ')} mono />
}

function State({ of: key }: { of: ApiKey }) {
  const { t } = useSpeech()
  const state = stateOf(key)
  return (
    <>
      <Badge tone={tones[state]}>{t(state)}</Badge>
      {key.revoked_at !== null && (
        <div class="quiet">
          <Moment at={key.revoked_at} />
        </div>
      )}
    </>
  )
}

const tones = { live: 'good', expired: 'plain', revoked: 'plain' } as const

function stateOf({ revoked_at, expires_at }: ApiKey): keyof typeof tones {
  if (revoked_at !== null) return 'revoked'
  return expires_at !== null && Date.parse(expires_at) <= Date.now() ? 'expired' : 'live'
}
