// Shows the sign-in page. All other pages require a session.
import { useState } from 'preact/hooks'
import { ApiError, call } from '../api/client.ts'
import { type Key, useSpeech } from '../language/language.tsx'
import { LanguageChoice } from '../parts/language-choice.tsx'

export function SignIn({ isOver, onSignedIn }: { isOver: boolean; onSignedIn(): void }) {
  const { t } = useSpeech()
  const [token, setToken] = useState('')
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<Key>()

  async function submit(event: Event): Promise<void> {
    event.preventDefault()
    setBusy(true)
    try {
      await call('POST', '/console/session', { token })
      onSignedIn()
    } catch (error) {
      setProblem(problemOf(error))
    }
    setToken('')
    setBusy(false)
  }

  return (
    <main class="sign-in">
      <p class="brand">
        <span class="mark" aria-hidden="true" /> Péage
      </p>
      <h1>{t('signIn')}</h1>
      {isOver && (
        <p class="notice" role="status">
          {t('sessionOver')}
        </p>
      )}
      <form onSubmit={submit}>
        <label>
          {t('token')}
          <input
            type="password"
            autocomplete="off"
            required
            value={token}
            onInput={event => setToken(event.currentTarget.value)}
          />
        </label>
        <p class="quiet">{t('signInHint')}</p>
        {problem !== undefined && (
          <p class="notice bad" role="alert">
            {t(problem)}
          </p>
        )}
        <button type="submit" class="primary" disabled={isBusy}>
          {t('signIn')}
        </button>
      </form>
      <LanguageChoice />
    </main>
  )
}

function problemOf(error: unknown): Key {
  const status = error instanceof ApiError ? error.status : 0
  if (status === 429) return 'tooManyTries'
  if (status === 403) return 'notAllowed'
  if (status === 503) return 'databaseAway'
  return status === 401 ? 'wrongToken' : 'noAnswer'
}
