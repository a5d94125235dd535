// Tests concurrent sign-ins, and sign-ins during other changes of the account. Afterwards, each account must still have
// a password or an identity.
import { expect, it } from 'vitest'
import { type Answer, call, newUser, password, passwordHash, type TestUser } from '../support/client.ts'
import type { TestGateway } from '../support/gateway.ts'
import { codeTo } from '../support/mailed.ts'
import { runs } from '../support/property-runs.ts'
import { describeOverSetups } from '../support/setups.ts'
import {
  codeFor,
  exchange,
  identitiesOf,
  newPerson,
  sendIdToken,
  signInStage,
  userOf,
  usersWith,
} from '../support/sign-in.ts'

const rounds = runs(12, 4)

describeOverSetups('concurrently,', setup => {
  const at = signInStage(setup)
  const newPassword = 'the next password of the user'

  const statuses = (answers: readonly Answer[]) => answers.map(({ status }) => status).sort()
  /** Creates an ID token. @returns a function that sends it, so that only the requests race with each other */
  async function prepare(claims: object, name: 'alpha' | 'beta' = 'alpha') {
    const id_token = await at[name].idToken({ ...claims })
    return (gateway: TestGateway = at.gateway, more: object = {}) =>
      sendIdToken(gateway, { id_token, ...more }, name)
  }
  /** Creates an account without a session, because a login would take most of the time of a round. */
  async function account({ isVerified }: { isVerified: boolean }) {
    const { email } = newPerson()
    const [row] = await at.gateway.sql<{ id: number }>(
      `insert into users (email, password_hash, email_verified_at)
       values ($1, $2, case when $3::boolean then now() end) returning id`,
      [email, passwordHash, isVerified],
    )
    return { id: row?.id ?? expect.unreachable(), email, password }
  }
  /** Creates an account with a verified email and a session. */
  async function signedIn(): Promise<TestUser> {
    const user = await newUser(at.gateway)
    await at.gateway.sql('update users set email_verified_at = now() where id = $1', [user.id])
    return user
  }
  const deactivate = ({ id }: { id: number }) =>
    call(at.other.admin, 'PATCH', `/admin/v1/users/${id}`, {
      headers: { authorization: `Bearer ${at.gateway.adminToken}` },
      body: { is_active: 0 },
    })
  const remove = ({ access }: TestUser) =>
    call(at.other.url, 'DELETE', '/api/v1/auth/account', {
      token: access,
      body: { current_password: password },
    })

  /** Checks what must be true after every race. */
  async function expectConsistent(answers: readonly Answer[]): Promise<void> {
    for (const { status, text } of answers) expect([status < 500, text]).toEqual([true, text])
    expect(
      await at.gateway.sql(
        `select email from users u where password_hash = '!'
            and not exists (select from identities i where i.user_id = u.id)`,
      ),
    ).toEqual([])
    expect(
      await at.gateway.sql('select sub from identities where user_id not in (select id from users)'),
    ).toEqual([])
    const twice = 'select user_id from identities group by user_id, issuer having count(*) > 1'
    expect(await at.gateway.sql(twice)).toEqual([])
  }

  it('50 first sign-ins of one person with 50 ID tokens make one account with one identity', async () => {
    const person = newPerson()
    const sends = await Promise.all(Array.from({ length: 50 }, () => prepare(person)))
    const answers = await Promise.all(sends.map((send, i) => send(i % 2 === 0 ? at.gateway : at.other)))
    expect(statuses(answers)).toEqual([...Array(49).fill(200), 201])
    const users = await usersWith(at.gateway, person.email)
    expect(users).toHaveLength(1)
    const id = users[0]?.id ?? 0
    expect(await identitiesOf(at.gateway, id)).toHaveLength(1)
    expect(new Set(answers.map(({ body }) => body.refresh_token)).size).toBe(50)
    for (const answer of answers) expect(await userOf(at, answer)).toBe(id)
    await expectConsistent(answers)
  })

  it('first sign-ins in a browser and in an app make one account', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const person = newPerson()
      const codes = [await codeFor(at, person), await codeFor(at, person)]
      const send = await prepare(person)
      const answers = await Promise.all([
        send(at.other),
        ...codes.map((code, i) => exchange(i === 0 ? at.gateway : at.other, code)),
      ])
      expect(statuses(answers)).toEqual([200, 200, 201])
      await expectConsistent(answers)
    }
  })

  it('first sign-ins of one person at two issuers make one account with two identities', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const { email } = newPerson()
      const sends = [
        await prepare(newPerson({ email })),
        await prepare(newPerson({ email }), 'beta'),
      ] as const
      const answers = await Promise.all([sends[0](), sends[1](at.other)])
      expect(statuses(answers)).toEqual([200, 201])
      const [user] = await usersWith(at.gateway, email)
      expect(await identitiesOf(at.gateway, user?.id ?? 0)).toHaveLength(2)
      await expectConsistent(answers)
    }
  })

  it('several links of one person to one account make one identity', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const user = await account({ isVerified: true })
      const person = newPerson({ email: user.email })
      const sends = await Promise.all([1, 2, 3, 4].map(() => prepare(person)))
      const answers = await Promise.all(sends.map((send, i) => send(i % 2 === 0 ? at.gateway : at.other)))
      expect(statuses(answers)).toEqual([200, 200, 200, 200])
      expect(await identitiesOf(at.gateway, user.id)).toEqual([{ issuer: at.alpha.url, sub: person.sub }])
      await expectConsistent(answers)
    }
  })

  it('only one of two persons is linked to an account if both have its email and the same issuer', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const user = await account({ isVerified: true })
      const sends = [
        await prepare(newPerson({ email: user.email })),
        await prepare(newPerson({ email: user.email })),
      ] as const
      const answers = await Promise.all([sends[0](), sends[1](at.other)])
      expect(statuses(answers)).toEqual([200, 409])
      expect(await identitiesOf(at.gateway, user.id)).toHaveLength(1)
      await expectConsistent(answers)
    }
  })

  it('only one of two persons gets a new account if both have the same email and the same issuer', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const { email } = newPerson()
      const sends = [await prepare(newPerson({ email })), await prepare(newPerson({ email }))] as const
      const answers = await Promise.all([sends[0](), sends[1](at.other)])
      expect(statuses(answers)).toEqual([201, 409])
      await expectConsistent(answers)
    }
  })

  it('one person with two emails at the provider gets one account', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const { sub } = newPerson()
      const sends = [await prepare(newPerson({ sub })), await prepare(newPerson({ sub }))] as const
      const answers = await Promise.all([sends[0](), sends[1](at.other)])
      expect(statuses(answers)).toEqual([200, 201])
      const [first, second] = await Promise.all(answers.map(answer => claimsOfUser(answer)))
      expect(first).toBe(second)
      await expectConsistent(answers)
    }
  })

  it('linking an identity and deleting the account leave no identity behind', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const user = await signedIn()
      const send = await prepare(newPerson({ email: user.email }))
      const [linked, removed] = await Promise.all([send(), remove(user)])
      expect(removed.status).toBe(200)
      // If the deletion came first, the person gets a new account.
      expect([200, 201]).toContain(linked.status)
      const [left] = await usersWith(at.gateway, user.email)
      expect([left?.id !== user.id, left !== undefined]).toEqual([true, linked.status === 201])
      expect(await identitiesOf(at.gateway, user.id)).toEqual([])
      await expectConsistent([linked, removed])
    }
  })

  it('a sign-in of a known person and the deletion of the account leave no session behind', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const user = await signedIn()
      const person = newPerson({ email: user.email })
      const first = await (await prepare(person))()
      expect(first.status).toBe(200)
      const send = await prepare(person)
      const [again, removed] = await Promise.all([send(), remove(user)])
      expect([removed.status, [200, 201].includes(again.status)]).toEqual([200, true])
      const rows = await at.gateway.sql('select from refresh_tokens where user_id = $1', [user.id])
      expect(rows).toEqual([])
      await expectConsistent([again, removed])
    }
  })

  it('a link and a deactivation leave the inactive user without a session', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const user = await account({ isVerified: true })
      const send = await prepare(newPerson({ email: user.email }))
      const [linked, deactivated] = await Promise.all([send(), deactivate(user)])
      expect([deactivated.status, [200, 401].includes(linked.status)]).toEqual([200, true])
      if (linked.status === 200) {
        const token = String(linked.body.access_token)
        expect((await call(at.gateway.url, 'GET', '/me', { token })).status).toBe(401)
        const body = { refresh_token: linked.body.refresh_token }
        expect((await call(at.gateway.url, 'POST', '/api/v1/auth/refresh', { body })).status).toBe(401)
      }
      await expectConsistent([linked, deactivated])
    }
  })

  it('a link with the old password and a reset by mail leave the email verified and the new password valid', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const user = await account({ isVerified: false })
      const auth = (path: string, body: object) =>
        call(at.other.url, 'POST', `/api/v1/auth/${path}`, { body })
      expect((await auth('password/forgot', { email: user.email })).status).toBe(202)
      const { code } = await codeTo(at.gateway, user.email)
      const send = await prepare(newPerson({ email: user.email }))
      const [linked, reset] = await Promise.all([
        send(at.gateway, { password: user.password }),
        auth('password/reset', { email: user.email, code, new_password: newPassword }),
      ])
      expect(reset.status).toBe(200)
      // If the reset comes first, it verifies the email. Then the person is linked without a check of the password.
      expect([200, 401]).toContain(linked.status)
      const [stored] = await usersWith(at.gateway, user.email)
      expect([stored?.id, stored?.isVerified]).toEqual([user.id, true])
      const login = await auth('login', { email: user.email, password: newPassword })
      expect(login.status).toBe(200)
      await expectConsistent([linked, reset, login])
    }
  })

  it('a reset with a provider and a login of the attacker leave the attacker without a session', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const attacker = await account({ isVerified: false })
      const { email, password } = attacker
      const send = await prepare(newPerson({ email }))
      const [reset, login] = await Promise.all([
        send(at.gateway, { reset: true }),
        call(at.other.url, 'POST', '/api/v1/auth/login', { body: { email, password } }),
      ])
      expect([reset.status, [200, 401].includes(login.status)]).toEqual([200, true])
      if (login.status === 200) {
        const body = { refresh_token: login.body.refresh_token }
        expect((await call(at.gateway.url, 'POST', '/api/v1/auth/refresh', { body })).status).toBe(401)
      }
      expect((await usersWith(at.gateway, email))[0]?.password_hash).toBe('!')
      await expectConsistent([reset, login])
    }
  })

  it('sign-ins of a person succeed even if the identity of the person is removed meanwhile', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const user = await account({ isVerified: true })
      const person = newPerson({ email: user.email })
      expect((await (await prepare(person))()).status).toBe(200)
      const sends = [await prepare(person), await prepare(person)] as const
      const unlinked = at.other.backing.database.transaction(async tx => {
        await tx.query('select from users where id = $1 for no key update', [user.id])
        await tx.query('delete from identities where user_id = $1', [user.id])
      })
      const answers = await Promise.all([sends[0](), sends[1](at.other)])
      await unlinked
      expect(statuses(answers)).toEqual([200, 200])
      for (const answer of answers) expect(await userOf(at, answer)).toBe(user.id)
      await expectConsistent(answers)
    }
  })

  it('exchanges of one code with correct and wrong passwords make exactly one link', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const user = await account({ isVerified: false })
      const code = await codeFor(at, newPerson({ email: user.email }))
      const passwords = [user.password, 'wrong 1', 'wrong 2', user.password, 'wrong 3']
      const answers = await Promise.all(
        passwords.map((password, i) => exchange(i % 2 === 0 ? at.gateway : at.other, { ...code, password })),
      )
      const told = answers.map(({ status }) => status)
      expect(told.filter(status => status === 200)).toEqual([200])
      for (const status of told) expect([200, 400, 401]).toContain(status)
      expect(await identitiesOf(at.gateway, user.id)).toHaveLength(1)
      await expectConsistent(answers)
    }
  })
})

function claimsOfUser({ body }: Answer): unknown {
  return JSON.parse(Buffer.from(String(body.access_token).split('.')[1] ?? '', 'base64url').toString()).sub
}
