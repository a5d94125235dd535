// The frame of the console. It manages the session, and shows the pages that the role may see.
import type { JSX } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { can } from './api/abilities.ts'
import { ApiError, call } from './api/client.ts'
import { forget, keep, onForgottenElsewhere, readKept } from './api/kept.ts'
import type { Role, Session } from './api/types.ts'
import { type Key, useSpeech } from './language/language.tsx'
import { AuditPage } from './pages/audit.tsx'
import { ConfigurationPage } from './pages/configuration.tsx'
import { DeliveriesPage } from './pages/deliveries.tsx'
import { OverviewPage } from './pages/overview.tsx'
import { RoutesPage } from './pages/routes.tsx'
import { SignIn } from './pages/sign-in.tsx'
import { UserPage } from './pages/user.tsx'
import { UsersPage } from './pages/users.tsx'
import { LanguageChoice } from './parts/language-choice.tsx'
import { Value } from './parts/value.tsx'

const sessionPath = '/console/session'

/**
 * The name of a stored value that exists while a user is signed in. Without this value, the console does not request
 * the session. The request would get a 401, and browsers log every 401 as an error.
 */
const signedIn = 'peage-signed-in'

interface Page {
  readonly id: Key
  isFor(role: Role): boolean
  /**
   * The pattern of the text that may follow the page's ID in the address, for example `42` in `#users/42`. If there is
   * no pattern, the address must end after the ID.
   */
  readonly takes?: RegExp
  show(role: Role, rest: string): JSX.Element
}

const seesGateway = (role: Role) => can(role, 'see-gateway')

const pages: readonly Page[] = [
  { id: 'overview', isFor: seesGateway, show: () => <OverviewPage /> },
  { id: 'routes', isFor: seesGateway, show: role => <RoutesPage role={role} /> },
  {
    id: 'users',
    isFor: () => true,
    takes: /^\d{1,16}$/,
    show: (role, rest) =>
      rest === '' ? <UsersPage role={role} /> : <UserPage key={rest} id={rest} role={role} />,
  },
  { id: 'deliveries', isFor: seesGateway, show: role => <DeliveriesPage role={role} /> },
  { id: 'audit', isFor: seesGateway, show: () => <AuditPage /> },
  { id: 'configuration', isFor: seesGateway, show: () => <ConfigurationPage /> },
]

export function App() {
  const { t } = useSpeech()
  const [session, setSession] = useState<Session | 'unknown' | 'none'>('unknown')
  const [isOver, setOver] = useState(false)
  const [hasStayed, setStayed] = useState(false)
  const leave = () =>
    setSession(before => {
      if (typeof before === 'object') setOver(true)
      return 'none'
    })
  const refresh = () =>
    call<Session>('GET', sessionPath).then(setSession, (error: unknown) => {
      // If the call got no response, the gateway may be restarting. Only a response from the server proves that there
      // is no session.
      const isAnswer = error instanceof ApiError && error.status !== 0
      if (isAnswer) {
        forget(signedIn)
        leave()
      } else setSession(before => (before === 'unknown' ? 'none' : before))
    })
  useEffect(() => {
    if (readKept(signedIn) === undefined) setSession('none')
    else void refresh()
    const timer = setInterval(() => {
      if (!document.hidden && readKept(signedIn) !== undefined) void refresh()
    }, 30_000)
    const stopListening = onForgottenElsewhere(signedIn, leave)
    return () => {
      clearInterval(timer)
      stopListening()
    }
  }, [])
  if (session === 'unknown')
    return (
      <p class="quiet center" role="status">
        {t('loading')}
      </p>
    )
  if (session === 'none') {
    const onSignedIn = () => {
      keep(signedIn, 'yes')
      setOver(false)
      setStayed(false)
      void refresh()
    }
    return <SignIn isOver={isOver} onSignedIn={onSignedIn} />
  }
  const signOut = async () => {
    setStayed(false)
    try {
      await call('DELETE', sessionPath)
    } catch {
      // The sign-out failed, so the session may still be open. Therefore the sign-in page must not appear.
      setStayed(true)
      return
    }
    forget(signedIn)
    setSession('none')
  }
  return <Frame session={session} hasStayed={hasStayed} onSignOut={() => void signOut()} />
}

interface FrameProps {
  readonly session: Session
  /** Whether the last sign-out failed. The user may then still be signed in. */
  readonly hasStayed: boolean
  onSignOut(): void
}

function Frame({ session, hasStayed, onSignOut }: FrameProps) {
  const { t } = useSpeech()
  const hash = useHash()
  const [id = '', rest = '', ...more] = hash.split('/')
  const seen = pages.filter(page => page.isFor(session.may))
  const named = pages.find(one => one.id === id)
  const isUnknown =
    hash !== '' && (named === undefined || more.length > 0 || (rest !== '' && !named.takes?.test(rest)))
  // If the page exists but is not for this role, the first page of the role opens.
  const page = isUnknown ? undefined : (seen.find(one => one === named) ?? seen[0])
  const main = useRef<HTMLElement>(null)
  const isFirst = useRef(true)
  const place = page === undefined ? hash : `${page.id}/${rest}`
  // Moves the focus to the new page, for users of screen readers and keyboards. The effect runs before the next frame,
  // because the user may press the next key immediately.
  useLayoutEffect(() => {
    if (!isFirst.current && place !== '') main.current?.focus()
    isFirst.current = false
    scrollTo(0, 0)
  }, [place])
  return (
    <>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        {t('skipToContent')}
      </button>
      <header>
        <p class="brand">
          <span class="mark" aria-hidden="true" /> Péage
        </p>
        <nav aria-label={t('menu')}>
          <ul>
            {seen.map(one => (
              <li key={one.id}>
                <a href={`#${one.id}`} aria-current={one === page ? 'page' : undefined}>
                  {t(one.id)}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <div class="who">
          <p>
            <span class="quiet as">{t('signedInAs')}</span> <Value text={session.operator} />{' '}
            <span class="badge plain">{session.may}</span>
          </p>
          <LanguageChoice />
          {seesGateway(session.may) && <a href="/openapi.json">{t('description')}</a>}
          <button type="button" onClick={onSignOut}>
            {t('signOut')}
          </button>
        </div>
      </header>
      <main ref={main} id="content" tabIndex={-1}>
        {hasStayed && (
          <p class="notice bad" role="alert">
            {t('signOutFailed')}
          </p>
        )}
        {page?.show(session.may, rest) ?? <UnknownPage />}
      </main>
    </>
  )
}

function UnknownPage() {
  const { t } = useSpeech()
  return (
    <>
      <h1>{t('pageUnknown')}</h1>
      <p>{t('pageUnknownHint')}</p>
    </>
  )
}

/** Returns the part of the address after `#`, which identifies the open page. */
function useHash(): string {
  const read = () => location.hash.slice(1)
  const [hash, setHash] = useState(read)
  // `useEffect` would add the listener only after the next frame. It would miss a change of the address before then.
  useLayoutEffect(() => {
    const listen = () => setHash(read())
    addEventListener('hashchange', listen)
    return () => removeEventListener('hashchange', listen)
  }, [])
  return hash
}
