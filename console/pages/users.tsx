// Searches users, and creates a user.
import { useEffect, useState } from 'preact/hooks'
import { can } from '../api/abilities.ts'
import { api, withQuery } from '../api/client.ts'
import type { Plans, Role, User, Users } from '../api/types.ts'
import { type Speech, useSpeech } from '../language/language.tsx'
import { Action, Done } from '../parts/action.tsx'
import { useLoaded } from '../parts/load.ts'
import { Moment } from '../parts/moment.tsx'
import { Badge, Empty, FailureWithRetry, Show } from '../parts/states.tsx'
import { type Column, Paging, Table } from '../parts/table.tsx'
import { Value } from '../parts/value.tsx'
import { configuredNames, hasDailyUses, PlanBadge, usePlans } from './plans.tsx'
import { useDailyLimit, usesInWords } from './uses.ts'

export function UsersPage({ role }: { role: Role }) {
  const speech = useSpeech()
  const { t } = speech
  const [typed, setTyped] = useState('')
  const [q, setQ] = useState('')
  const [plan, setPlan] = useState('')
  const [isActive, setActive] = useState('')
  const [cursor, setCursor] = useState<string>()
  const [done, setDone] = useState<string>()
  useEffect(() => {
    const timer = setTimeout(() => {
      setQ(typed.trim())
      setCursor(undefined)
    }, 250)
    return () => clearTimeout(timer)
  }, [typed])
  const path = withQuery('/users', { q, plan, is_active: isActive, cursor, limit: '50' })
  const loaded = useLoaded(path, () => api<Users>('GET', path))
  const plans = usePlans()
  const names = configuredNames(plans.data)
  const dailyLimit = useDailyLimit(role)
  const narrow = (set: (value: string) => void) => (event: { currentTarget: { value: string } }) => {
    set(event.currentTarget.value)
    setCursor(undefined)
  }
  return (
    <>
      <div class="title">
        <h1>{t('users')}</h1>
        {can(role, 'change-user') && (
          <Action
            label={t('createUser')}
            fields={[
              { name: 'email', label: t('email'), type: 'email' },
              { name: 'password', label: t('passwordOptional'), type: 'password', isOptional: true },
              { name: 'plan', label: t('plan'), type: 'select', options: names },
            ]}
            will={() => t('createUserWill')}
            did={({ email = '' }) => t('createUserDid', { value: email })}
            run={({ email, password, plan: chosen }) =>
              api('POST', '/users', { email, plan: chosen, ...(password === '' ? {} : { password }) })
            }
            onDone={what => {
              setDone(what)
              loaded.reload()
            }}
          />
        )}
      </div>
      <Done what={done} />
      <search>
        <form class="line" onSubmit={event => event.preventDefault()}>
          <label class="wide">
            {t('searchUsers')}
            <input
              type="search"
              value={typed}
              spellcheck={false}
              autocomplete="off"
              onInput={event => setTyped(event.currentTarget.value)}
            />
          </label>
          <label>
            {t('plan')}
            <select value={plan} onChange={narrow(setPlan)}>
              <option value="">{t('any')}</option>
              {names.map(name => (
                <option key={name}>{name}</option>
              ))}
              {plans.data?.unknown?.map(({ name }) => (
                <option key={name} value={name}>
                  {name} ({t('notConfigured')})
                </option>
              ))}
            </select>
          </label>
          <label>
            {t('status')}
            <select value={isActive} onChange={narrow(setActive)}>
              <option value="">{t('any')}</option>
              <option value="1">{t('active')}</option>
              <option value="0">{t('inactive')}</option>
            </select>
          </label>
        </form>
      </search>
      <Show loaded={loaded}>
        {({ users, next_cursor }) => (
          <>
            <FailureWithRetry of={plans} />
            {users.length === 0 ? (
              <Empty>{t('noUsers')}</Empty>
            ) : (
              <Table
                caption={t('users')}
                rows={users}
                keyOf={({ id }) => id}
                columns={columnsOf(speech, plans.data, dailyLimit)}
              />
            )}
            <Paging
              cursor={cursor}
              next={next_cursor}
              onGo={setCursor}
              texts={{ more: t('more'), first: t('first') }}
            />
          </>
        )}
      </Show>
    </>
  )
}

function columnsOf(speech: Speech, plans: Plans | undefined, dailyLimit: number | undefined): Column<User>[] {
  const { t } = speech
  return [
    { title: t('id'), cell: ({ id }) => id, isNumber: true },
    {
      title: t('email'),
      cell: ({ id, email, email_verified_at }) => (
        <>
          <a href={`#users/${id}`}>
            <Value text={email} />
          </a>{' '}
          {email_verified_at === null && <span class="quiet">{t('unverified')}</span>}
        </>
      ),
    },
    { title: t('plan'), cell: ({ plan }) => <PlanBadge plan={plan} plans={plans} /> },
    {
      title: t('status'),
      cell: ({ is_active }) => (
        <Badge tone={is_active ? 'good' : 'bad'}>{t(is_active ? 'active' : 'inactive')}</Badge>
      ),
    },
    ...(hasDailyUses(plans)
      ? [
          {
            title: t('usesToday'),
            cell: (user: User) => usesInWords(user, dailyLimit, speech),
            isNumber: true,
          },
        ]
      : []),
    { title: t('created'), cell: ({ created_at }) => <Moment at={created_at} /> },
  ]
}
