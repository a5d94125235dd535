// Loads the plans, and shows the name of a plan or all plans.
import { api } from '../api/client.ts'
import type { Plans } from '../api/types.ts'
import { useSpeech } from '../language/language.tsx'
import { type Loaded, useLoaded } from '../parts/load.ts'
import { Badge, Show } from '../parts/states.tsx'

/** @param everyMs the interval in milliseconds; undefined to load once */
export function usePlans(everyMs?: number): Loaded<Plans> {
  return useLoaded('plans', () => api<Plans>('GET', '/plans'), everyMs)
}

/** Returns the names of the configured plans, lowest first. Empty until the plans are loaded. */
export function configuredNames(plans: Plans | undefined): string[] {
  return plans?.plans.map(({ name }) => name) ?? []
}

/**
 * Returns whether the plan `free` is configured. Only this plan has a daily limit. Until the plans are loaded, the
 * result is true. So the page does not shift if the loaded plans contain `free`, as the built-in plans do.
 */
export function hasDailyUses(plans: Plans | undefined): boolean {
  return plans === undefined || configuredNames(plans).includes('free')
}

/** Shows the plan of a user. A stored plan that is not configured is marked. */
export function PlanBadge({ plan, plans }: { plan: string; plans: Plans | undefined }) {
  const { t } = useSpeech()
  const isUnknown = plans !== undefined && !configuredNames(plans).includes(plan)
  return (
    <>
      <Badge tone="plain">{plan}</Badge> {isUnknown && <Badge tone="warn">{t('notConfigured')}</Badge>}
    </>
  )
}

/** Shows all plans. For each plan, it shows the number of users, and the quotas and features of the plan. */
export function PlanOverview() {
  const { t } = useSpeech()
  const plans = usePlans(30_000)
  return (
    <section class="panel">
      <h2>{t('plans')}</h2>
      <Show loaded={plans}>
        {loaded => (
          <ul class="rows plans">
            {loaded.plans.map(plan => (
              <PlanRow key={plan.name} plans={loaded} {...plan} />
            ))}
            {loaded.unknown?.map(plan => (
              <PlanRow key={plan.name} plans={loaded} {...plan} />
            ))}
          </ul>
        )}
      </Show>
    </section>
  )
}

type Shown = Partial<Plans['plans'][number]> & { name: string; users: number | null; plans: Plans }

function PlanRow({ plans, name, users, quotas = {}, rate_limit, api_keys = 0, webhook }: Shown) {
  const { t, number } = useSpeech()
  const features = [
    ...Object.entries(quotas).map(([quota, allowance]) => `${quota}: ${allowance}`),
    ...(rate_limit
      ? [t('planRate', { limit: number(rate_limit.requests), window: number(rate_limit.window_seconds) })]
      : []),
    ...(api_keys > 0 ? [t('planKeys', { count: number(api_keys) })] : []),
    ...(webhook ? [t('webhook')] : []),
  ]
  return (
    <li>
      <span>
        <PlanBadge plan={name} plans={plans} />{' '}
        <span class="quiet">
          {users === null ? t('usersNotCounted') : t('usersCounted', { count: number(users) })}
        </span>
      </span>
      {features.length > 0 && (
        <ul class="tags">
          {features.map(text => (
            <li key={text}>{text}</li>
          ))}
        </ul>
      )}
    </li>
  )
}
