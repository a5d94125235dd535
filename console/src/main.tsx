// The console: who is signed in, which page is shown, and in which language.
import { render } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { ask, type Role, type Session, whenSignedOut } from './api.ts'
import { choose, language, t, type Word } from './language.ts'
import { AuditPage } from './pages/audit.tsx'
import { ConfigurationPage } from './pages/configuration.tsx'
import { DeliveriesPage } from './pages/deliveries.tsx'
import { OverviewPage } from './pages/overview.tsx'
import { RoutesPage } from './pages/routes.tsx'
import { SignInPage } from './pages/sign-in.tsx'
import { UserPage } from './pages/user.tsx'
import { UsersPage } from './pages/users.tsx'
import { useSignal } from './signal.ts'
import './style.css'

type Page = Extract<Word, 'overview' | 'routes' | 'users' | 'deliveries' | 'audit' | 'configuration'>

/** Those that a role may see. */
const pagesOf: Record<Role, Page[]> = {
  all: ['overview', 'routes', 'users', 'deliveries', 'audit', 'configuration'],
  support: ['overview', 'routes', 'users', 'deliveries', 'audit', 'configuration'],
  read: ['overview', 'routes', 'users', 'deliveries', 'audit', 'configuration'],
  billing: ['users'],
}

function useHash(): string[] {
  const read = () => location.hash.replace(/^#\/?/, '').split('/').map(decodeURIComponent)
  const [parts, setParts] = useState(read)
  useEffect(() => {
    const changed = () => {
      setParts(read())
      document.getElementById('main')?.focus()
    }
    addEventListener('hashchange', changed)
    return () => removeEventListener('hashchange', changed)
  }, [])
  return parts
}

/** Says that somebody has signed in here, and nothing else. */
const signedIn = 'peage-signed-in'

function App() {
  const [session, setSession] = useState<Session | null>()
  const chosen = useSignal(language)
  useEffect(() => {
    whenSignedOut(() => setSession(null))
    // Asked only where somebody has signed in: browsers report every 401 as an error.
    if (localStorage.getItem(signedIn) === null) setSession(null)
    else ask<Session>('GET', '/console/session').then(setSession, () => setSession(null))
  }, [])
  if (session === undefined) return <p class="muted">{t('loading')}</p>
  if (session === null)
    return (
      <>
        <Languages />
        <SignInPage
          onSession={opened => {
            localStorage.setItem(signedIn, '1')
            setSession(opened)
          }}
        />
      </>
    )
  const signOut = () => {
    localStorage.removeItem(signedIn)
    setSession(null)
  }
  return <Frame key={chosen} session={session} onSignedOut={signOut} />
}

function Frame({ session, onSignedOut }: { session: Session; onSignedOut: () => void }) {
  const [name = '', parameter] = useHash()
  const pages = pagesOf[session.may]
  const page = pages.find(one => one === name) ?? pages[0] ?? 'users'
  return (
    <div class="frame">
      <button type="button" class="skip" onClick={skip}>
        {t('skip')}
      </button>
      <header>
        <strong class="brand">Péage</strong>
        <nav aria-label="Péage">
          {pages.map(one => (
            <a key={one} href={`#/${one}`} aria-current={one === page ? 'page' : undefined}>
              {t(one)}
            </a>
          ))}
        </nav>
        <div class="who">
          <Languages />
          <span class="muted">{t('signedInAs', session.operator, session.may)}</span>
          <button
            type="button"
            class="quiet"
            onClick={() => ask('DELETE', '/console/session').finally(onSignedOut)}
          >
            {t('signOut')}
          </button>
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        {page === 'overview' && <OverviewPage />}
        {page === 'routes' && <RoutesPage key={parameter} userId={parameter} />}
        {page === 'users' &&
          (parameter ? <UserPage key={parameter} id={parameter} may={session.may} /> : <UsersPage />)}
        {page === 'deliveries' && <DeliveriesPage may={session.may} />}
        {page === 'audit' && <AuditPage />}
        {page === 'configuration' && <ConfigurationPage />}
      </main>
    </div>
  )
}

function skip(): void {
  document.getElementById('main')?.focus()
}

function Languages() {
  const chosen = useSignal(language)
  return (
    <fieldset class="languages">
      <legend class="hidden">{t('theme')}</legend>
      {(['fr', 'en'] as const).map(one => (
        <button
          key={one}
          type="button"
          class="quiet"
          aria-pressed={one === chosen}
          lang={one}
          onClick={() => choose(one)}
        >
          {one === 'fr' ? 'Français' : 'English'}
        </button>
      ))}
    </fieldset>
  )
}

const place = document.getElementById('app')
if (place !== null) render(<App />, place)
