// Tests the console in a real browser with a real gateway.
import { readFile } from 'node:fs/promises'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { accessibilityFindings, openPage, startBrowser, waitForRows } from '../support/browser.ts'
import { giveKey, login, newUser } from '../support/client.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { focusOutside, hasFocus, tabTo, walkWithTab } from '../support/keyboard.ts'
import { describeWithChromium, firstOrAll } from '../support/services.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'

describeWithChromium('the console', chromium => {
  let browser: Browser
  let gateway: TestGateway
  let upstream: Upstream
  const hostile = '<img src=x onerror=alert(1)>'
  const unseen = '\u202e\u2066\u00ad\u2060\u3164\u115f\u{e0041}'
  const pages = ['overview', 'routes', 'users', 'users/1', 'deliveries', 'audit', 'configuration']

  beforeAll(async () => {
    upstream = await startUpstream()
    gateway = await startGateway(
      `upstreams: { echo: { targets: ['${upstream.url}'] } }
routes:
  - { name: courses, path: /courses/*, upstream: echo, plans: [premium, pro], rate_limit: 9/1m }
  - { name: public, path: /public/*, upstream: echo, auth: none }
mail: { smtp: 'smtp://127.0.0.1:1', from: courses@example.com }`,
      undefined,
      {
        admin:
          ', tokens: { ops: a-token-for-operators-0123456789, reader: {token: a-token-for-readers-012345678901, may: read}, support: {token: a-token-for-support-012345678901, may: support}, billing: {token: a-token-for-billing-01234567890123, may: billing} }',
      },
    )
    await newUser(gateway, 'free')
    await newUser(gateway, 'free')
    await gateway.sql(
      `insert into admin_audit (at, operator, method, route, user_id, changes, status, request_id)
       values (now(), $1, 'PATCH', $1, null, $2, 200, $1)`,
      [`${hostile}${unseen}`, JSON.stringify({ x: `${hostile}\u202e` })],
    )
    browser = await startBrowser(chromium)
  })
  afterAll(async () => {
    await browser?.close()
    await gateway?.stop()
    await upstream?.close()
  })

  /** For each page that a test opened, the errors and warnings that the browser reported. */
  const complaints: string[][] = []
  afterEach(async () => {
    // Closes all pages. Open pages refresh their data every few seconds, and would slow down later tests.
    await Promise.all(browser.contexts().map(context => context.close()))
    expect(complaints.splice(0).flat()).toEqual([])
  })

  /** @param statuses the error status codes that the test expects in responses */
  async function openConsole(options: BrowserContextOptions = {}, statuses: number[] = []): Promise<Page> {
    const opened = await openPage(browser, options, statuses)
    complaints.push(opened.complaints)
    await opened.page.goto(`${gateway.admin}/console`)
    return opened.page
  }

  async function signIn(
    token = gateway.adminToken,
    options: BrowserContextOptions = {},
    statuses: number[] = [],
  ) {
    const page = await openConsole(options, statuses)
    await page.locator('input[type=password]').fill(token)
    await page.keyboard.press('Enter')
    await page.locator('nav').waitFor()
    return page
  }

  /** Opens the page whose address has this id after `#`. Resolves when the page shows its data. */
  async function open(page: Page, id: string): Promise<void> {
    await page.goto(`${gateway.admin}/console#${id}`)
    await page.locator(`nav a[aria-current=page][href="#${id.split('/')[0]}"]`).waitFor()
    await page.locator('h1').waitFor()
    await page.locator('main p.quiet[role=status]').first().waitFor({ state: 'detached' })
  }

  /** Confirms the open dialog: clicks the button that has the name of the action. */
  async function confirm(page: Page, action: string): Promise<void> {
    await page.locator('dialog').getByRole('button', { name: action, exact: true }).click()
  }

  /** Creates a user with a session, a key, a webhook and a failed delivery. */
  async function newUserWithAll() {
    const user = await newUser(gateway, 'pro')
    await login(gateway.url, user.email, user.password)
    await giveKey(gateway, user, `peage_key_of_${user.id}`)
    await gateway.sql(
      "insert into webhooks (user_id, url, receiver, secret) values ($1, 'https://hooks.example/a', 'hooks.example:443', 'x')",
      [user.id],
    )
    await gateway.sql(
      `insert into webhook_deliveries (alert_id, user_id, receiver, status, attempts, due_at, error, created_at)
       values (gen_random_uuid(), $1, 'hooks.example:443', 'failed', 3, now(), 'timeout', now())`,
      [user.id],
    )
    return user
  }

  it.each(
    firstOrAll([
      ['fr', 360, 'dark'],
      ['en', 1280, 'light'],
    ] as const),
  )(
    'in the language %s, %i px wide and in the color scheme %s, is accessible and shows where the focus is',
    async (locale, width, colorScheme) => {
      await newUserWithAll()
      const page = await signIn(undefined, { locale, colorScheme, viewport: { width, height: 900 } })
      for (const id of pages) {
        await open(page, id)
        expect([id, await accessibilityFindings(page)]).toEqual([id, []])
        expect([id, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([id, width])
        expect([id, await walkWithTab(page)]).toEqual([id, []])
      }
      expect(await page.evaluate('document.documentElement.lang')).toBe(locale)
    },
  )

  it('shows stored HTML as text, and escapes invisible characters', async () => {
    const page = await signIn()
    await page.goto(`${gateway.admin}/console#audit`)
    await page.getByText(`${hostile}\\u202e\\u2066\\u00ad\\u2060\\u3164\\u115f\\u{e0041}`).first().waitFor()
    expect(await page.locator('main img').count()).toBe(0)
  })

  it.each(
    firstOrAll([
      ['en', 360, 'dark'],
      ['fr', 1280, 'light'],
    ] as const),
  )(
    'in the language %s, %i px wide and in the color scheme %s, can be used with only the keyboard',
    async (locale, width, colorScheme) => {
      const user = await newUserWithAll()
      const page = await openConsole({ locale, colorScheme, viewport: { width, height: 900 } })
      const { keyboard } = page
      const press = async (selector: string, key: string) => {
        await tabTo(page, selector)
        await keyboard.press(key)
      }
      await tabTo(page, 'input[type=password]')
      await keyboard.type(gateway.adminToken)
      await keyboard.press('Enter')
      await page.locator('.verdict').waitFor()
      // On the overview, the skip link moves the focus past the menu.
      await press('.skip', 'Enter')
      expect(await hasFocus(page, 'main')).toBe(true)
      // Page of routes: selects the method POST in the form that explains a request, and sends the form.
      await press('nav a[href="#routes"]', 'Enter')
      await page.locator('article').first().waitFor()
      await press('main form select', 'ArrowDown')
      await press('main form button[type=submit]', 'Space')
      await page.locator('.outcome').waitFor()
      expect(await page.locator('main form select').first().inputValue()).toBe('POST')
      // Page of users: finds the user by the plan and the first characters of the email, and opens the user's page.
      await press('nav a[href="#users"]', 'Enter')
      await tabTo(page, 'input[type=search]')
      await keyboard.type(user.email.slice(0, 12))
      await tabTo(page, 'search select')
      // The console shows the page first, and loads the configured plans afterwards.
      await page.locator('search option').getByText('pro').waitFor({ state: 'attached' })
      for (const plan of ['free', 'premium', 'pro']) {
        await keyboard.press('ArrowDown')
        await page.locator('search option:checked').getByText(plan).waitFor({ state: 'attached' })
      }
      // The search starts 250 ms after the last key press, and replaces the list. So the test waits for the new list
      // before it moves the focus to a link.
      await waitForRows(page, 1)
      await press(`a[href="#users/${user.id}"]`, 'Enter')
      await page.locator('dl').waitFor()
      expect(await hasFocus(page, 'main')).toBe(true)
      // Page of a user: opens the dialog that changes the plan, cancels it, opens it again and confirms it.
      const changePlan = 'main .panel dl + .buttons button:first-of-type'
      await press(changePlan, 'Enter')
      await page.locator('dialog[open]').waitFor()
      for (let stops = 0; stops < 8; stops += 1) {
        expect(await focusOutside(page, 'dialog')).toEqual([])
        await keyboard.press('Tab')
      }
      await keyboard.press('Escape')
      await page.locator('dialog').waitFor({ state: 'detached' })
      expect(await hasFocus(page, changePlan)).toBe(true)
      await keyboard.press('Space')
      await press('dialog select', 'ArrowDown')
      await press('dialog button[type=submit]', 'Enter')
      await page.locator('.notice.good').getByText('premium').waitFor()
      expect(await gateway.sql('select plan from users where id = $1', [user.id])).toEqual([
        { plan: 'premium' },
      ])
      expect(await hasFocus(page, changePlan)).toBe(true)
      // Page of a user: ends a session. The button of this action disappears together with the session.
      await press('.sessions button', 'Enter')
      await press('dialog button[type=submit]', 'Enter')
      await page.locator('.sessions li').nth(1).waitFor({ state: 'detached' })
      expect(await hasFocus(page, 'main')).toBe(true)
      // Deliveries, audit log and configuration: filters the list on each of these pages.
      await press('nav a[href="#deliveries"]', 'Enter')
      await page.locator('tbody tr').first().waitFor()
      await tabTo(page, 'main select')
      await keyboard.press('ArrowDown')
      await page.locator('tbody').waitFor({ state: 'detached' })
      await press('nav a[href="#audit"]', 'Enter')
      await tabTo(page, 'main input')
      await keyboard.type('nobody')
      await keyboard.press('Enter')
      await page.locator('.empty').waitFor()
      await press('nav a[href="#configuration"]', 'Enter')
      await tabTo(page, 'main input')
      await keyboard.type('free_daily')
      await page.locator('tbody tr').nth(3).waitFor({ state: 'detached' })
      await press('.who button', 'Enter')
      await page.locator('.sign-in').waitFor()
    },
  )

  it('shows after two clicks why a request of a user is refused, and the daily uses, sessions and API key of the user', async () => {
    const user = await newUser(gateway, 'free')
    await giveKey(gateway, user, 'peage_key_of_two_clicks')
    await gateway.sql(
      "update users set daily_usage = 7, last_usage_date = (now() at time zone 'utc')::date where id = $1",
      [user.id],
    )
    const page = await signIn()
    await open(page, 'users')
    await page.locator(`a[href="#users/${user.id}"]`).click()
    await page.getByRole('button', { name: 'Explain' }).click()
    await page.getByText('403 plan_insufficient').waitFor()
    const shown = await page.locator('main').innerText()
    expect(shown).toMatch(/Uses today\s+7 of 1/)
    expect(shown).toMatch(/Key "api-token"\s+since .*, last used never/)
    expect(await page.locator('.sessions li').count()).toBe(1)
  })

  it('saves the data of a user as a file after a confirmation, and shows the name of the file', async () => {
    const user = await newUser(gateway, 'free')
    const page = await signIn('a-token-for-support-012345678901')
    await open(page, `users/${user.id}`)
    await page.getByRole('button', { name: 'Export data' }).click()
    await page.getByText(`All data stored about ${user.email} is saved as a file`).waitFor()
    const coming = page.waitForEvent('download')
    await confirm(page, 'Export data')
    const file = await coming
    expect(file.suggestedFilename()).toBe(`user-${user.id}.json`)
    await page.getByText(`The data is saved as user-${user.id}.json.`).waitFor()
    const saved = JSON.parse(await readFile(await file.path(), 'utf8'))
    const answer = await fetch(`${gateway.admin}/admin/v1/users/${user.id}/export`, {
      headers: { authorization: 'Bearer a-token-for-operators-0123456789' },
    })
    const { exported_at: _, ...kept } = (await answer.json()) as Record<string, unknown>
    expect(saved).toMatchObject(kept)
  })

  const all = [...pages.slice(0, 3), ...pages.slice(4)]
  const ofAccess = [
    ...['End session', 'End session'],
    ...['End all sessions', 'Revoke the key "api-token"', 'Remove webhook'],
  ]
  const ofSupport = ['Reset today’s usage', 'Send reset mail', 'Export data']
  it.each([
    [
      'ops',
      'operators-0123456789',
      all,
      [
        'Change plan',
        ...ofSupport,
        'Mark email as verified',
        ...ofAccess,
        'Change email',
        'Set password',
        'Deactivate user',
        'Delete user',
        'Explain',
      ],
      ['Create user'],
      ['Try now'],
    ],
    ['support', 'support-012345678901', all, [...ofSupport, ...ofAccess, 'Explain'], [], ['Try now']],
    ['reader', 'readers-012345678901', all, ['Explain'], [], []],
    ['billing', 'billing-01234567890123', ['users'], ['Change plan'], [], []],
  ] as const)(
    'shows an operator with the role %s only the pages and buttons that this role may use',
    async (_, end, seen, ofUser, ofUsers, ofDelivery) => {
      const user = await newUserWithAll()
      const page = await signIn(`a-token-for-${end}`)
      const refused: string[] = []
      page.on('response', answer => {
        if (answer.status() === 401 || answer.status() === 403) refused.push(answer.url())
      })
      expect(
        await page.locator('nav a').evaluateAll(links => links.map(link => link.getAttribute('href'))),
      ).toEqual(seen.map(id => `#${id}`))
      for (const id of seen) await open(page, id)
      // If the role is not allowed to see the page in the URL, the console shows the page of users instead.
      if (seen.length === 1) {
        await page.goto(`${gateway.admin}/console#configuration`)
        await page.locator('nav a[aria-current=page][href="#users"]').waitFor()
      }
      const buttons = () => page.locator('main button').allTextContents()
      await open(page, 'users')
      expect(await buttons()).toEqual(ofUsers)
      const press = async (name: string) => {
        await page.locator('main').getByRole('button', { name, exact: true }).first().click()
        const field = page.locator('dialog input')
        if (name === 'Change email') await field.fill(`other${user.id}@example.com`)
        if (name === 'Set password') await field.fill('correct horse battery staple')
        if (name === 'Delete user') await field.fill(`other${user.id}@example.com`)
        await confirm(page, name)
        await page.locator('dialog').waitFor({ state: 'detached' })
      }
      if (seen.length > 1) {
        await open(page, 'deliveries')
        expect(new Set(await buttons())).toEqual(new Set(ofDelivery))
        for (const name of ofDelivery) await press(name)
      }
      await open(page, `users/${user.id}`)
      expect(await buttons()).toEqual(ofUser)
      // The actions on sessions are tested first, because a new password ends all sessions.
      const inTurn = [
        ...ofUser.filter(name => ofAccess.includes(name)),
        ...ofUser.filter(name => !ofAccess.includes(name)),
      ]
      for (const name of new Set(inTurn.filter(one => one !== 'Explain'))) await press(name)
      expect(refused).toEqual([])
    },
  )

  it('shows that an action is not allowed if the role has lost the permission since the page was opened', async () => {
    const user = await newUser(gateway, 'free')
    const page = await signIn('a-token-for-support-012345678901', {}, [403])
    await open(page, `users/${user.id}`)
    const restore = await gateway.configure(['may: support', 'may: read'])
    try {
      await page.getByRole('button', { name: 'End all sessions' }).click()
      await confirm(page, 'End all sessions')
      await page.getByRole('alert').getByText('Your role does not allow this.').waitFor()
    } finally {
      await restore()
    }
  })

  it('shows the data of a page within a second after the operator opens the page', async () => {
    const page = await signIn()
    const shownAfter = async () => {
      await page.goto('about:blank')
      await page.goto(`${gateway.admin}/console#overview`)
      await page.locator('.verdict').waitFor()
      const shown = await page.evaluate<number>(
        'new Promise(shown => requestAnimationFrame(() => requestAnimationFrame(() => shown(performance.now()))))',
      )
      const [paint] = await page.evaluate<number[]>(
        "performance.getEntriesByName('first-contentful-paint').map(({ startTime }) => startTime)",
      )
      expect(paint).toBeLessThanOrEqual(shown)
      return shown
    }
    // The fastest of three loads counts, because other programs may slow down the machine.
    const times = [await shownAfter(), await shownAfter(), await shownAfter()]
    expect(Math.min(...times)).toBeLessThan(1_000)
  })

  it('opens the page of a link that the operator clicks while the console is starting', async () => {
    const page = await signIn()
    await page.addInitScript(`new MutationObserver((_, observer) => {
      if (document.querySelector('nav') === null) return
      observer.disconnect()
      location.hash = '#users'
    }).observe(document, { childList: true, subtree: true })`)
    await page.reload()
    await page.locator('nav a[aria-current=page][href="#users"]').waitFor()
  })

  it('refuses a wrong token, and does not store the correct token in the browser', async () => {
    const page = await openConsole({}, [401])
    await page.locator('input[type=password]').fill('wrong')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').waitFor()
    await page.locator('input[type=password]').fill(gateway.adminToken)
    await page.keyboard.press('Enter')
    await page.locator('nav').waitFor()
    const kept = await page.evaluate(
      '[JSON.stringify(localStorage), document.cookie, document.body.innerHTML].join()',
    )
    expect(kept).not.toContain(gateway.adminToken)
    expect(page.url()).not.toContain(gateway.adminToken)
    expect(gateway.log.join('\n')).not.toContain(gateway.adminToken)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect(await page.context().cookies()).toEqual([])
  })

  it('shows an error and stays signed in if a sign-out fails, and signs out all tabs if a sign-out succeeds', async () => {
    const page = await signIn()
    const other = await page.context().newPage()
    await other.goto(`${gateway.admin}/console#users`)
    await other.locator('nav').waitFor()
    const signOut = page.getByRole('button', { name: 'Sign out' })
    await page.context().setOffline(true)
    await signOut.click()
    await page.getByRole('alert').getByText('Signing out failed').waitFor()
    expect(await page.locator('nav').count()).toBe(1)
    await page.context().setOffline(false)
    await signOut.click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await other.getByRole('heading', { name: 'Sign in' }).waitFor({ timeout: 5_000 })
    expect(await other.locator('main.sign-in').count()).toBe(1)
    // The browser reported an error for the failed sign-out. This error is expected, so the test removes it.
    complaints.length = 0
  })

  it('shows that the database is not available if a sign-in fails for this reason', async () => {
    const page = await openConsole({}, [503])
    await gateway.sql('alter table admin_audit rename to admin_audit_away')
    try {
      await page.locator('input[type=password]').fill(gateway.adminToken)
      await page.keyboard.press('Enter')
      await page.getByRole('alert').getByText('The database is not available.').waitFor()
    } finally {
      await gateway.sql('alter table admin_audit_away rename to admin_audit')
    }
  })

  it('shows the page of the user with the highest possible id', async () => {
    const id = '9007199254740991'
    await gateway.sql(
      `insert into users (id, email, password_hash) overriding system value values (${id}, 'last@example.com', '!')`,
    )
    const page = await signIn()
    await open(page, `users/${id}`)
    await page.getByRole('heading', { name: 'last@example.com' }).waitFor({ timeout: 5_000 })
  })

  it('queues no mail to an address that cannot receive mail', async () => {
    const [{ id } = { id: 0 }] = await gateway.sql<{ id: number }>(
      "insert into users (email, password_hash) values ('é@exemple.fr', '!') returning id",
    )
    const page = await signIn()
    await open(page, `users/${id}`)
    await page.getByRole('button', { name: 'Send reset mail' }).click()
    await confirm(page, 'Send reset mail')
    await page.getByText('The mail is queued.').waitFor()
    expect(await gateway.sql('select id from mails where user_id = $1', [id])).toEqual([])
  })

  const patch = (id: number, body: object, headers = {}) =>
    fetch(`${gateway.admin}/admin/v1/users/${id}`, {
      method: 'PATCH',
      headers: { authorization: 'Bearer a-token-for-operators-0123456789', ...headers },
      body: JSON.stringify(body),
    })

  it.each([
    [
      'en',
      'Create user',
      'Another user has this email.',
      'The password is too short: at least 8 characters.',
    ],
    [
      'fr',
      'Créer un utilisateur',
      'Un autre utilisateur a cette adresse e-mail.',
      'Le mot de passe est trop court : au moins 8 caractères.',
    ],
  ])('shows errors in the language of the console: %s', async (locale, action, taken, short) => {
    const user = await newUser(gateway, 'free')
    const page = await signIn(gateway.adminToken, { locale }, [400, 409])
    await open(page, 'users')
    await page.getByRole('button', { name: action }).click()
    const dialog = page.locator('dialog')
    await dialog.locator('input[type=email]').fill(user.email)
    await confirm(page, action)
    await dialog.getByRole('alert').getByText(`${taken} (409 email_taken)`).waitFor()
    await dialog.locator('input[type=password]').fill('short')
    await confirm(page, action)
    await dialog.getByRole('alert').getByText(`${short} (400 password_too_short)`).waitFor()
  })

  it('shows the warnings of /readyz on the overview, and the units and the time zone of the charts', async () => {
    const page = await signIn(undefined, { timezoneId: 'Europe/Paris' })
    await open(page, 'overview')
    const ready = (await (await fetch(`${gateway.admin}/readyz`)).json()) as { warnings: string[] }
    expect(await page.locator('section:has(h2:text-is("Warnings")) li').allInnerTexts()).toEqual(
      ready.warnings,
    )
    const shown = await page.locator('main').innerText()
    for (const title of ['Requests per second', 'Errors (5xx) per 10 s', 'Response time ms'])
      expect(shown).toContain(title)
    expect(shown).toMatch(/Last 15 minutes Times in Europe\/Paris \(\S+\)/)
  })

  it('draws a single value in a chart as a point', async () => {
    const page = await signIn()
    const drawn = async (value: number | null) => {
      await page.route('**/admin/v1/overview', async route => {
        const overview = (await (await route.fetch()).json()) as { requests: (number | null)[] }
        const requests = overview.requests.map((_, index) => (index === 40 ? value : null))
        await route.fulfill({ json: { ...overview, requests } })
      })
      await open(page, 'routes')
      await open(page, 'overview')
      await page.unroute('**/admin/v1/overview')
      // Waits until the data is drawn, and then counts the pixels that have the color of the first line.
      return page.evaluate<number>(`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => {
        const canvas = document.querySelector('figure canvas')
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
        let count = 0
        for (let i = 0; i < data.length; i += 4)
          if (data[i] === 0x17 && data[i + 1] === 0x73 && data[i + 2] === 0x7e && data[i + 3] === 255) count += 1
        done(count)
      })))`)
    }
    expect(await drawn(70)).toBeGreaterThan(8)
    expect(await drawn(null)).toBe(0)
  })

  it('shows "This page does not exist" for every unknown address, and for no known address', async () => {
    const page = await signIn()
    for (const id of ['nowhere', 'overview/1', 'users/x', 'users/1/2', '/']) {
      await page.goto(`${gateway.admin}/console#${id}`)
      await page.getByRole('heading', { name: 'This page does not exist' }).waitFor()
      expect([id, await page.locator('nav a[aria-current]').count()]).toEqual([id, 0])
    }
    for (const id of pages) {
      await open(page, id)
      expect([id, await page.getByText('This page does not exist').count()]).toEqual([id, 0])
    }
  })

  it('deletes a user only after the operator has typed the email of the user, even if Enter is pressed before', async () => {
    const user = await newUserWithAll()
    const page = await signIn()
    await open(page, `users/${user.id}`)
    const dangerous = page.locator('section', {
      has: page.getByRole('heading', { name: 'Dangerous actions' }),
    })
    expect(await dangerous.getByRole('button').allTextContents()).toEqual([
      ...['End all sessions', 'Revoke the key "api-token"', 'Remove webhook'],
      ...['Change email', 'Set password', 'Deactivate user', 'Delete user'],
    ])
    await dangerous.getByRole('button', { name: 'Delete user' }).click()
    const field = page.locator('dialog input')
    const button = page.locator('dialog').getByRole('button', { name: 'Delete user' })
    for (const typed of ['', 'yes', user.email.slice(1)]) {
      await field.fill(typed)
      expect(await button.isDisabled()).toBe(true)
      await page.keyboard.press('Enter')
    }
    const count = () => gateway.sql('select id from users where id = $1', [user.id])
    expect(await count()).toHaveLength(1)
    await field.fill(user.email)
    await button.click()
    await page.getByText(`${user.email} is deleted.`).waitFor()
    expect(await count()).toEqual([])
  })

  it('shows in the audit log which operator changed which user, through which channel, and the old and new values', async () => {
    const user = await newUser(gateway, 'free')
    await patch(user.id, { plan: 'pro', is_active: 0, email_verified: true })
    await patch(user.id, { plan: 'premium', email: `new${user.email}` }, { 'x-peage-channel': 'cli' })
    const page = await signIn()
    await open(page, 'audit')
    await page.getByLabel('User ID').fill(String(user.id))
    await page.getByRole('button', { name: 'Filter' }).click()
    await waitForRows(page, 2)
    const rows = (await page.locator('tbody tr').allInnerTexts()).map(text => text.replace(/\s+/g, ' '))
    const whom = `new${user.email} ID ${user.id} done`
    expect(rows).toEqual([
      expect.stringContaining(
        `ops Command line Change user Plan: pro → premium Email: set (not recorded) ${whom}`,
      ),
      expect.stringContaining(
        `ops API Change user Plan: free → pro Status: Active → Inactive Email verified: no → yes ${whom}`,
      ),
    ])
    await page.getByLabel('Action').selectOption({ label: 'Delete user' })
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.getByText('No matching entries.').waitFor()
    await page.getByLabel('Action').selectOption({ label: 'Change user' })
    await page.getByLabel('From').fill('2020-01-01')
    await page.getByLabel('To', { exact: true }).fill('2020-01-31')
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.getByText('No matching entries.').waitFor()
    await page.getByLabel('To', { exact: true }).fill('')
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.locator('tbody tr').nth(1).waitFor()
    await page.getByLabel('User ID').fill('')
    await page.getByLabel('Action').selectOption({ label: 'Sign in to the console' })
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.locator('tbody tr').getByText('Sign in to the console').first().waitFor()
  })

  it('shows the device of each session on the page of a user', async () => {
    const user = await newUser(gateway, 'free')
    for (const [hash, userAgent] of [
      ['a', 'Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0'],
      ['b', `Evil${unseen}/1.0`],
      ['c', null],
    ])
      await gateway.sql(
        `insert into refresh_tokens (user_id, token_hash, expires_at, session_id, session_created_at, user_agent)
         values ($1, $2, now() + interval '99 years', gen_random_uuid(), now() + interval '1 hour', $3)`,
        [user.id, `device ${hash} of ${user.id}`, userAgent],
      )
    const page = await signIn()
    await open(page, `users/${user.id}`)
    const devices = await page.locator('.sessions li').allInnerTexts()
    expect(devices.map(text => text.split('\n')[0])).toEqual(
      expect.arrayContaining(['Firefox on Linux', 'Evil', 'Unknown device']),
    )
  })

  it.each(firstOrAll(['fr', 'en']))(
    'fits the window, has a low header on a phone, and shows each badge on one line, in the language %s',
    async locale => {
      await newUserWithAll()
      await gateway.reload()
      const page = await signIn(undefined, { locale })
      for (const width of [390, 720, 1000, 1280]) {
        await page.setViewportSize({ width, height: 900 })
        for (const id of pages) {
          await open(page, id)
          const found = await page.evaluate<{ scrollWidth: number; header: number; wrong: string[] }>(`({
            scrollWidth: document.documentElement.scrollWidth,
            header: document.querySelector('header').offsetHeight,
            wrong: [
              ...[...document.querySelectorAll('.badge')].filter(one => one.offsetHeight > 28),
              ...[...document.querySelectorAll('.facts > section')].filter(one => one.scrollWidth > one.clientWidth),
              ...[...document.querySelectorAll('table')].filter(one => one.offsetWidth > one.parentElement.clientWidth),
            ].map(one => one.outerHTML.slice(0, 200)),
          })`)
          expect([width, id, found.scrollWidth, found.wrong]).toEqual([width, id, width, []])
          if (width === 390) expect(found.header).toBeLessThan(150)
        }
      }
    },
  )

  it('shows "not set" for an empty value of the configuration', async () => {
    const page = await signIn()
    await page.route('**/admin/v1/configuration', async route => {
      const json = (await (await route.fetch()).json()) as { values: { path: string; value: unknown }[] }
      const values = json.values.map(one =>
        one.path === 'storage.redis'
          ? { ...one, value: null }
          : one.path === 'auth.key_secret'
            ? { ...one, value: '' }
            : one,
      )
      await route.fulfill({ json: { ...json, values } })
    })
    await open(page, 'configuration')
    for (const path of ['storage.redis', 'auth.key_secret', 'subscription.upgrade_url'])
      expect(await page.locator('tr', { has: page.getByText(path, { exact: true }) }).innerText()).toContain(
        'not set',
      )
  })
})
