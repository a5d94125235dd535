// Tests the questions of proxies (docs/forward-auth.md) while the configuration changes, while the gateway stops, and
// with several workers.
import { describe, expect, it } from 'vitest'
import { RawConnection, value } from '../security/raw-client.ts'
import { call, login, newUser } from '../support/client.ts'
import { startCrew } from '../support/crew.ts'
import { startGateway } from '../support/gateway.ts'
import { waitingForLocks } from '../support/locks.ts'
import { describeWithServices } from '../support/services.ts'
import { services } from '../support/setups.ts'
import { codeOf, inFields, inPath, path, send } from './ask.ts'

const routes = `routes:
  - { name: public, path: /public/*, auth: none }
  - { name: daily, path: /daily/*, free_daily: true }
`
const server = ', forward_auth: { from: [127.0.0.1] }'

describe('a reload', () => {
  it('applies changes of `server.forward_auth` and of routes, and can remove `server.forward_auth`', async () => {
    const gateway = await startGateway(routes, undefined, { server })
    try {
      const codes = async () => [
        codeOf(await send(gateway.url, inFields({ target: '/public/x' }))),
        codeOf(await send(gateway.url, inFields({ target: '/public/x' }, '/ask'))),
        codeOf(await send(gateway.url, inFields({ target: '/public/x' }), 'GET', '127.0.0.2')),
      ]
      const unknown = '404 route_unknown'
      expect(await codes()).toEqual(['200', unknown, unknown])
      await gateway.configure(['from: [127.0.0.1]', 'from: [127.0.0.0/8]'])
      expect(await codes()).toEqual(['200', unknown, '200'])
      await gateway.configure(['from: [127.0.0.0/8]', 'from: [127.0.0.1], path: /ask'])
      expect(await codes()).toEqual([unknown, '200', unknown])
      await gateway.configure(['auth: none', 'auth: required'])
      expect(await codes()).toEqual([unknown, '401 token_invalid', unknown])
      await gateway.configure(['from: [127.0.0.1], path: /ask', 'from: [127.0.0.2], path: /ask'])
      expect(await codes()).toEqual([unknown, unknown, unknown])
      // Without `server.forward_auth`, each route needs an upstream. So the gateway refuses this file and keeps the
      // previous configuration.
      await gateway.configure([', forward_auth: { from: [127.0.0.2], path: /ask }', ''])
      expect(gateway.refused.join()).toContain('routes[0].upstream  is required')
      expect(
        codeOf(await send(gateway.url, inFields({ target: '/public/x' }, '/ask'), 'GET', '127.0.0.2')),
      ).toBe('401 token_invalid')
      await gateway.configure([routes.replace('auth: none', 'auth: required'), 'routes: []\n'])
      expect(
        codeOf(await send(gateway.url, inFields({ target: '/public/x' }, '/ask'), 'GET', '127.0.0.2')),
      ).toBe(unknown)
    } finally {
      await gateway.stop()
    }
  })
})

describeWithServices('a gateway that stops', () => {
  it('still answers a question that has already arrived', async () => {
    const stores = await services.open()
    const gateway = await startGateway(routes, stores, { server })
    const { database } = gateway.backing
    const connection = new RawConnection(gateway.url)
    try {
      const user = await newUser(gateway)
      let stopped: Promise<void> | undefined
      await database.transaction(async tx => {
        await tx.query('select 1 from users where id = $1 for update', [user.id])
        connection.write(inFields({ target: '/daily/x', lines: [`Authorization: Bearer ${user.access}`] }))
        await waitingForLocks(database)
        stopped = gateway.stop()
      })
      const answer = await connection.answer()
      expect([answer && codeOf(answer), answer && value(answer, 'x-user-id')]).toEqual([
        '200',
        String(user.id),
      ])
      await stopped
    } finally {
      connection.close()
      await gateway.stop()
      await services.drop(stores)
    }
  })
})

describeWithServices('several workers', () => {
  it('answer questions, and together allow a free user one use per day', async () => {
    const stores = await services.open()
    const crew = await startCrew({ stores, routes, server })
    try {
      const email = 'crew@example.com'
      const password = 'correct horse battery'
      await call(crew.url, 'POST', '/api/v1/auth/register', { body: { email, password } })
      const { access } = await login(crew.url, email, password)
      const lines = [`Authorization: Bearer ${access}`]
      const uses = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          send(crew.url, (index % 2 === 0 ? inFields : inPath)({ target: '/daily/x', lines })),
        ),
      )
      expect(uses.map(codeOf).sort()).toEqual(['200', ...Array(19).fill('429 daily_limit_reached')])
      expect(codeOf(await send(crew.url, inFields({ target: '/public/x' }), 'GET', '127.0.0.2'))).toBe(
        '404 route_unknown',
      )
      const metrics = await (await fetch(`${crew.admin}/metrics`)).text()
      expect(metrics).toMatch(
        /http_requests_total\{route="daily",method="GET",status="200",forward_auth="true"\} 1\n/,
      )
      expect(metrics).toMatch(
        /http_requests_total\{route="daily",method="GET",status="429",forward_auth="true"\} 19\n/,
      )
    } finally {
      await crew.stop()
      await services.drop(stores)
    }
  })
})

it('without `server.forward_auth`, the path for questions is an ordinary path', async () => {
  const gateway = await startGateway('routes: []\n')
  try {
    expect(codeOf(await send(gateway.url, inFields({ target: '/public/x' })))).toBe('404 route_unknown')
    expect(codeOf(await send(gateway.url, inFields({ target: '/x' }, `${path}/..`)))).toBe('400 path_invalid')
  } finally {
    await gateway.stop()
  }
})
