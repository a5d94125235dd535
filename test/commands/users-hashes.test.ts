// Tests `peage users hashes` on the database and through a running gateway.
import { beforeEach, expect, it } from 'vitest'
import { foreignVectors } from '../support/foreign-hashes.ts'
import { json } from './peage.ts'
import { describeOverDoors } from './users-doors.ts'

describeOverDoors('peage users hashes', ({ users, inside }) => {
  beforeEach(() => inside(database => database.query('delete from users')))
  const store = (hashes: readonly string[]) =>
    inside(database =>
      database.query(
        `insert into users (email, password_hash, is_active)
         select n || '@example.com', hash, n % 2 from unnest($1::text[]) with ordinality as given (hash, n)`,
        [hashes],
      ),
    )

  it('prints the number of users per hash format, sorted with the largest number first', async () => {
    const others = ['x', '$2x$05$abc', '$argon2d$v=19$m=8,t=1,p=1$a$b', '!!', 'argon2$argon2id$v=19$']
    const vectors = foreignVectors.map(({ hash, stored = hash }) => stored)
    await store([...vectors, ...others, '!', '!'])
    expect(json(await users(['hashes', '--json']))).toEqual({
      hashes: [
        { format: 'bcrypt', users: 5 },
        { format: 'other', users: 5 },
        { format: 'pbkdf2_sha256', users: 3 },
        { format: 'scrypt', users: 3 },
        { format: 'argon2id', users: 2 },
        { format: 'fbscrypt', users: 2 },
        { format: 'none', users: 2 },
        { format: 'pbkdf2_sha512', users: 2 },
        { format: 'argon2i', users: 1 },
      ],
    })
  })

  it('prints a table', async () => {
    await store(['!', '$2b$05$a', '$2b$05$b'])
    expect(await users(['hashes'])).toMatchObject({
      exit: 0,
      stdout: 'FORMAT  USERS\nbcrypt  2\nnone    1\n',
      stderr: '',
    })
  })

  it('prints `no users`, or an empty list with --json, if there are no users', async () => {
    expect((await users(['hashes'])).stdout).toBe('no users\n')
    expect(json(await users(['hashes', '--json']))).toEqual({ hashes: [] })
  })
})
