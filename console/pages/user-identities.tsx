// Shows the identities of a user at identity providers. The operator can remove each identity.
import { can } from '../api/abilities.ts'
import { api } from '../api/client.ts'
import type { Identity, Role, UserDetails } from '../api/types.ts'
import { useSpeech } from '../language/language.tsx'
import { Action } from '../parts/action.tsx'
import { Moment, MomentOrNever } from '../parts/moment.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Value } from '../parts/value.tsx'

interface Props {
  readonly user: Pick<UserDetails, 'id' | 'email'>
  readonly identities: readonly Identity[]
  readonly role: Role
  onDone(what: string): void
}

export function UserIdentities({ user: { id, email }, identities, role, onDone }: Props) {
  const { t } = useSpeech()
  const removal: Column<Identity> = {
    title: t('actions'),
    cell: ({ provider, issuer }) => (
      <Action
        label={t('removeIdentity')}
        will={() => t('removeIdentityWill', { email, value: provider })}
        did={() => t('removeIdentityDid', { value: provider })}
        // The path contains the issuer, because a reload of the configuration may give the name of the provider to
        // another issuer.
        run={() => api('DELETE', `/users/${id}/identities/${encodeURIComponent(issuer)}`)}
        onDone={onDone}
      />
    ),
  }
  return (
    <Table
      caption={t('identities')}
      rows={identities}
      keyOf={({ issuer }) => issuer}
      columns={[
        { title: t('provider'), cell: identity => <Provider of={identity} /> },
        { title: t('email'), cell: identity => <Email of={identity} /> },
        { title: t('id'), cell: ({ sub }) => <Value text={sub} mono /> },
        { title: t('created'), cell: ({ created_at }) => <Moment at={created_at} /> },
        { title: t('lastUse'), cell: ({ last_used_at }) => <MomentOrNever at={last_used_at} /> },
        ...(can(role, 'manage-access') ? [removal] : []),
      ]}
    />
  )
}

/** Shows the name of a provider, and below it the issuer. The audit contains the issuer, not the name. */
function Provider({ of: { provider, issuer } }: { of: Identity }) {
  return (
    <>
      <Value text={provider} />
      {provider !== issuer && (
        <div class="quiet small">
          <Value text={issuer} mono />
        </div>
      )}
    </>
  )
}

function Email({ of: { email } }: { of: Identity }) {
  const { t } = useSpeech()
  return email === null ? t('none') : <Value text={email} />
}
