// Shows the uses of a user's quotas as bars with numbers, and resets them.
import { can } from '../api/abilities.ts'
import { api } from '../api/client.ts'
import type { Quota, Role, UserDetails } from '../api/types.ts'
import { useSpeech } from '../language/language.tsx'
import { Action } from '../parts/action.tsx'
import { Moment } from '../parts/moment.tsx'
import { Value } from '../parts/value.tsx'

interface Props {
  readonly user: Pick<UserDetails, 'id' | 'email' | 'usage'>
  readonly role: Role
  onDone(what: string): void
}

/** A bar and a reset button are shown only for quotas with a limit. The uses of other quotas are not counted. */
export function Quotas({ user: { id, email, usage }, role, onDone }: Props) {
  const { t } = useSpeech()
  const reset = (quota: string) => () => api('POST', `/users/${id}/reset-usage`, { quota })
  return (
    <>
      <ul class="rows quotas">
        {usage.map(quota => (
          <li key={quota.name}>
            <h3>
              <Value text={quota.name} mono />
            </h3>
            {isCounted(quota) && can(role, 'manage-access') && (
              <Action
                label={t('resetQuota', { quota: quota.name })}
                will={() => t('resetQuotaWill', { quota: quota.name, email })}
                did={() => t('resetQuotaDid', { quota: quota.name })}
                run={reset(quota.name)}
                onDone={onDone}
              />
            )}
            {isCounted(quota) ? (
              <Bar {...quota} />
            ) : (
              <p class="quiet">{t(quota.limit === 0 ? 'quotaNone' : 'quotaUnlimited')}</p>
            )}
          </li>
        ))}
      </ul>
      {can(role, 'manage-access') && (
        <div class="buttons">
          <Action
            label={t('resetAll')}
            will={() => t('resetAllWill', { email })}
            did={() => t('resetAllDid')}
            run={() => api('POST', `/users/${id}/reset-usage`)}
            onDone={onDone}
          />
        </div>
      )}
    </>
  )
}

type Counted = { [Member in keyof Quota]: NonNullable<Quota[Member]> }

function isCounted(quota: Quota): quota is Counted {
  return quota.resets_at !== null
}

/** The bar changes its color from 80 % of the limit on, and again when the quota is used up. */
function Bar({ name, period, limit, used, remaining, resets_at }: Counted) {
  const { t, number } = useSpeech()
  const uses = t(period === 'day' ? 'quotaOfDay' : 'quotaOfMonth', {
    used: number(used),
    limit: number(limit),
  })
  return (
    <>
      <meter
        aria-label={name}
        aria-valuetext={uses}
        max={limit}
        value={used}
        low={limit * 0.8}
        high={limit - 1}
        optimum={0}
      />
      <p>
        {uses}
        <br />
        <span class="quiet">
          {t('quotaLeft', { remaining: number(remaining) })} <Moment at={resets_at} />
        </span>
      </p>
    </>
  )
}
