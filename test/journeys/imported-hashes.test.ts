// The password hashes of users can be imported from other systems. At the first login of a user, the gateway replaces
// the imported hash.
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { call } from '../support/client.ts'
import { foreignVectors } from '../support/foreign-hashes.ts'
import { journey, routes } from '../support/journey.ts'
import { codeTo, kindsTo, mailSection } from '../support/mailed.ts'
import { describeOverSetups } from '../support/setups.ts'

const ownHash = expect.stringMatching(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
const password = 'un mot de passe'
const bcrypt = '$2y$05$NqeBhh0B9mATtGfoX4qnhOx1YfTY2E8SaBcAcax5gk/vLv6KmxBvu'
let made = 0

describeOverSetups('imported password hashes', setup => {
  const at = journey(
    setup,
    { auth: ', hashing: { concurrency: 2, queue: 200, wait: 30s }' },
    upstream => `account: { deletion: true }
events: { url: '${upstream}/events', secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw }
${routes(upstream)}${mailSection()}`,
  )
  const create = (fields: object) =>
    call(at.gateway.admin, 'POST', '/admin/v1/users', { body: fields, token: at.gateway.adminToken })
  const imported = async (password_hash = bcrypt) => {
    made += 1
    const email = `imported${made}@example.com`
    const { status, body } = await create({ email, password_hash })
    expect(status).toBe(201)
    return { id: Number(body.id), email }
  }
  const post = (path: string, body: object, token?: string) =>
    call(at.gateway.url, 'POST', `/api/v1/auth/${path}`, { body, ...(token === undefined ? {} : { token }) })
  const login = (email: string, given = password) => post('login', { email, password: given })
  const stored = async ({ id }: { id: number }) => {
    const [row] = await at.gateway.sql<{ password_hash: string; session_epoch: number }>(
      'select password_hash, session_epoch from users where id = $1',
      [id],
    )
    return row
  }

  it.each(foreignVectors)(
    'are replaced by Argon2id at the first login, and the next login uses the new hash ($system, $format)',
    async vector => {
      const user = await imported(vector.hash)
      expect((await login(user.email, `${vector.password}.`)).status).toBe(401)
      expect(await stored(user)).toEqual({ password_hash: vector.stored ?? vector.hash, session_epoch: 0 })
      expect((await login(user.email, vector.password)).status).toBe(200)
      const first = await stored(user)
      const isStrong = vector.hash.includes('m=102400')
      expect(first).toEqual({ password_hash: isStrong ? vector.stored : ownHash, session_epoch: 0 })
      expect((await login(user.email, vector.password)).status).toBe(200)
      expect((await login(user.email, `${vector.password}.`)).status).toBe(401)
      expect(await stored(user)).toEqual(first)
    },
  )

  it('are replaced without ending sessions or mailed codes, and without new events or mails', async () => {
    const user = await imported()
    const session = (await login(user.email)).body
    await post('password/forgot', { email: user.email })
    const { code } = await codeTo(at.gateway, user.email)
    await at.gateway.sql('update users set password_hash = $2 where id = $1', [user.id, bcrypt])
    expect((await login(user.email)).status).toBe(200)
    expect(await stored(user)).toEqual({ password_hash: ownHash, session_epoch: 0 })
    expect((await post('refresh', { refresh_token: session.refresh_token })).status).toBe(200)
    const events = await at.gateway.sql('select type from events where user_id = $1', [user.id])
    expect(events).toEqual([{ type: 'user.created' }])
    expect(await kindsTo(at.gateway, user.email)).toEqual(['reset'])
    const reset = await post('password/reset', { email: user.email, code, new_password: 'un autre mot' })
    expect(reset.status).toBe(200)
  })

  it('are accepted even if the password has fewer than 8 characters', async () => {
    // The hash was created with `htpasswd -bnBC 4 '' 1234`.
    const user = await imported('$2y$04$J/4W0wS71KFOxKn/NUKrbOoriFylN6snMQlFKLgEouwxXkU2AtE3i')
    expect((await login(user.email, '1234')).status).toBe(200)
    expect((await login(user.email, '1234')).status).toBe(200)
  })

  describe('in the database', () => {
    /** Creates a trigger that records each change of a hash, and refuses the change for users with the plan `pro`. */
    beforeAll(async () => {
      await at.gateway.sql('create table hash_changes (user_id bigint)')
      await at.gateway.sql(`create function note_hash_change() returns trigger language plpgsql as $$
        begin
          if new.plan = 'pro' then raise exception 'no change'; end if;
          insert into hash_changes values (new.id);
          return new;
        end
        $$`)
      await at.gateway.sql(`create trigger note before update of password_hash on users
        for each row execute function note_hash_change()`)
    })
    afterEach(() => at.gateway.sql('delete from hash_changes'))

    it('are replaced once under 100 concurrent first logins, which all succeed', async () => {
      const user = await imported()
      const logins = await Promise.all(Array.from({ length: 100 }, () => login(user.email)))
      expect(new Set(logins.map(({ status }) => status))).toEqual(new Set([200]))
      expect(await at.gateway.sql('select user_id from hash_changes')).toEqual([{ user_id: user.id }])
      expect(await stored(user)).toEqual({ password_hash: ownHash, session_epoch: 0 })
    })

    it('stay if they cannot be replaced, but the login succeeds; a later login replaces them', async () => {
      const user = await imported()
      await at.gateway.sql("update users set plan = 'pro' where id = $1", [user.id])
      expect((await login(user.email)).status).toBe(200)
      expect((await stored(user))?.password_hash).toBe(bcrypt)
      await at.gateway.sql("update users set plan = 'free' where id = $1", [user.id])
      expect((await login(user.email)).status).toBe(200)
      expect((await stored(user))?.password_hash).toEqual(ownHash)
    })

    it('are accepted as proof of the current password for a password change and an account deletion', async () => {
      const user = await imported()
      const access = String((await login(user.email)).body.access_token)
      await at.gateway.sql('update users set password_hash = $2 where id = $1', [user.id, bcrypt])
      const change = { current_password: password, new_password: 'un autre mot' }
      const changed = await post('password', change, access)
      expect(changed.status).toBe(200)
      await at.gateway.sql('update users set password_hash = $2 where id = $1', [user.id, bcrypt])
      const remove = (current_password: string) =>
        call(at.gateway.url, 'DELETE', '/api/v1/auth/account', {
          body: { current_password },
          token: String(changed.body.access_token),
        })
      expect((await remove('un autre mot')).status).toBe(401)
      expect((await remove(password)).status).toBe(200)
    })
  })

  describe('given to POST /admin/v1/users', () => {
    it.each([
      ['an unknown format', { password_hash: 'correct horse battery' }],
      ['a hash beyond the limits', { password_hash: bcrypt.replace('$05$', '$15$') }],
      ['no text', { password_hash: 5 }],
      ['null', { password_hash: null }],
      ['an empty text', { password_hash: '' }],
      ['the text for no password', { password_hash: '!' }],
      ['white space', { password_hash: ` ${bcrypt}` }],
      ['a password too', { password_hash: bcrypt, password }],
    ])('are refused with an error for the field `password_hash`: %s', async (_, fields) => {
      const { status, headers, body } = await create({ email: 'refused@example.com', ...fields })
      expect([status, headers.get('x-peage-error'), body.field]).toEqual([
        400,
        'request_invalid',
        'password_hash',
      ])
      expect(await at.gateway.sql("select from users where email = 'refused@example.com'")).toEqual([])
    })

    it('appear in the audit log only as the text `set`', async () => {
      const { id } = await imported()
      const [entry] = await at.gateway.sql<{ changes: object }>(
        'select changes from admin_audit where user_id = $1',
        [id],
      )
      expect(entry?.changes).toEqual({ email: 'set', password_hash: 'set' })
    })
  })
})
