// Finds users, by email or number.
import { useEffect, useState } from 'preact/hooks'
import { ask, query, type User } from '../api.ts'
import { number, t, time } from '../language.ts'
import { Loading, Mark, Outside, Table, useList } from '../ui.tsx'

/** A pause in typing after which is searched. */
const pauseMs = 200

export function UsersPage() {
  const [typed, setTyped] = useState('')
  const [q, setQ] = useState('')
  const [plan, setPlan] = useState('')
  useEffect(() => {
    const timer = setTimeout(() => setQ(typed.trim()), pauseMs)
    return () => clearTimeout(timer)
  }, [typed])
  const { first, rows, more } = useList(`users ${q} ${plan}`, async cursor => {
    const path = `/admin/v1/users${query({ q, plan, cursor })}`
    const { users, next_cursor } = await ask<{ users: User[]; next_cursor: string | null }>('GET', path)
    return [users, next_cursor]
  })
  return (
    <>
      <h1>{t('users')}</h1>
      <search class="row">
        <label class="wide">
          {t('search')}
          <input type="search" value={typed} onInput={event => setTyped(event.currentTarget.value)} />
        </label>
        <label>
          {t('plan')}
          <select value={plan} onInput={event => setPlan(event.currentTarget.value)}>
            <option value="">{t('anyPlan')}</option>
            <option>free</option>
            <option>premium</option>
            <option>pro</option>
          </select>
        </label>
      </search>
      <Loading of={first}>
        {() => (
          <>
            <Table
              head={['N°', t('email'), t('plan'), t('state'), t('today'), t('created')]}
              label={t('users')}
            >
              {rows.map(user => (
                <tr key={user.id}>
                  <td class="number">{user.id}</td>
                  <td>
                    <a href={`#/users/${user.id}`}>
                      <Outside>{user.email}</Outside>
                    </a>
                  </td>
                  <td>{user.plan}</td>
                  <td>
                    <Mark good={user.is_active === 1}>{t(user.is_active === 1 ? 'active' : 'inactive')}</Mark>
                  </td>
                  <td class="number">{number(user.daily_usage)}</td>
                  <td>{time(user.created_at)}</td>
                </tr>
              ))}
            </Table>
            {more}
          </>
        )}
      </Loading>
    </>
  )
}
