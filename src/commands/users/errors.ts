// Reports the result of a change to a user, and builds the errors about users.
import type { User } from '../../users/user.ts'
import type { Io } from '../io.ts'
import { print } from '../print.ts'
import type { UserAdministration, UserRef } from './administration.ts'
import { userLabel } from './print-users.ts'

/** Prints the sentence. With `--json`, prints the user instead. */
export function report(
  { stdout }: Io,
  { json }: { json?: true },
  user: User,
  sentence: string,
): Promise<void> {
  return print(stdout, [`${json ? JSON.stringify(user) : sentence}\n`])
}

/** @throws Error if the user does not exist */
export async function findUser(users: UserAdministration, ref: UserRef): Promise<User> {
  return orNoSuchUser(await users.find(ref), ref)
}

export function orNoSuchUser(user: User | undefined, ref: UserRef): User {
  if (user === undefined) throw noSuchUser(ref)
  return user
}

export function noSuchUser(ref: UserRef): Error {
  const which = 'id' in ref ? `no user ${ref.id}` : `no user with the email ${ref.email}`
  return new Error(`there is ${which}. Run peage users list to see all users.`)
}

export function emailInUse(holder: User): Error {
  const { id, is_active } = holder
  const hint =
    is_active === 1 ? 'Use another email.' : `To reactivate that user, run peage users activate ${id}.`
  const which = is_active === 1 ? userLabel(holder) : `the inactive ${userLabel(holder)}`
  return new Error(`the email is in use by ${which}. ${hint}`)
}
