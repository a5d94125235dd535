// Exchanges a token for the session's cookie.
import { useState } from 'preact/hooks'
import { ApiError, ask, type Session } from '../api.ts'
import { t } from '../language.ts'
import { messageOf } from '../ui.tsx'

export function SignInPage({ onSession }: { onSession: (session: Session) => void }) {
  const [token, setToken] = useState('')
  const [failure, setFailure] = useState<string>()
  const [isBusy, setBusy] = useState(false)

  async function submit(event: Event) {
    event.preventDefault()
    setBusy(true)
    try {
      await ask('POST', '/console/session', { token })
      onSession(await ask<Session>('GET', '/console/session'))
    } catch (error) {
      const status = error instanceof ApiError ? error.status : 0
      setFailure(status === 401 ? t('tokenWrong') : status === 429 ? t('tooMany') : messageOf(error))
    }
    setToken('')
    setBusy(false)
  }

  return (
    <main class="sign-in" id="main">
      <form class="card" onSubmit={submit}>
        <h1>Péage</h1>
        <label>
          {t('token')}
          <input
            type="password"
            autocomplete="off"
            value={token}
            onInput={event => setToken(event.currentTarget.value)}
            aria-describedby="token-hint"
            required
          />
        </label>
        <p id="token-hint" class="muted">
          {t('tokenHint')}
        </p>
        <div role="alert">{failure && <p class="notice bad">{failure}</p>}</div>
        <button type="submit" disabled={isBusy}>
          {t('signIn')}
        </button>
      </form>
    </main>
  )
}
