// Tests the prompts of `peage users` on a terminal: two prompts without echo for a password, and one prompt before a
// deletion.
import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { createPasswords } from '../../src/accounts/password.ts'
import type { Io } from '../../src/commands/io.ts'
import { createUserStore } from '../../src/users/user-store.ts'
import type { Printed } from './peage.ts'
import { eitherPlace } from './users-setup.ts'

/** Creates a standard input that behaves like a terminal, and records the calls of `setRawMode`. */
function terminal() {
  const modes: boolean[] = []
  const stdin = Object.assign(new PassThrough(), {
    isTTY: true,
    setRawMode: (raw: boolean) => modes.push(raw),
  })
  return { stdin: stdin as Io['stdin'] & PassThrough, modes }
}

interface Asked extends Printed {
  /**
   * The arguments of all calls of `setRawMode`, in order: true switches raw mode on. In raw mode, the terminal does not
   * show the characters that the operator types.
   */
  modes: boolean[]
}

describe('peage users on a terminal', () => {
  const { users, inside } = eitherPlace()
  const ada = 'ada@example.com'

  /** Runs a command and types each answer when its question is printed. `typed` may contain several answers. */
  async function ask(words: string[], answers: [question: string, typed: string][]): Promise<Asked> {
    const { stdin, modes } = terminal()
    const left = [...answers]
    const printed = await users(words, stdin, soFar => {
      const [next] = left
      if (next === undefined || !soFar.endsWith(next[0])) return
      left.shift()
      stdin.write(next[1])
    })
    expect(left).toEqual([])
    return { ...printed, modes }
  }

  const opens = (password: string): Promise<boolean> =>
    inside(async database => {
      const found = await createUserStore(database).findPasswordRecord(ada)
      const passwords = createPasswords({ concurrency: 1, queue: 0, wait: 0 })
      return passwords.verify(found?.password_hash, password)
    })

  it('`create` prompts for the password twice without echo, and then restores the terminal', async () => {
    const { exit, stdout, stderr, modes } = await ask(
      ['create', ada],
      [
        ['New password: ', 'correct horse\r'],
        ['Repeat the password: ', 'correct horse\r'],
      ],
    )
    expect({ exit, stdout }).toEqual({
      exit: 0,
      stdout: 'user 1 (ada@example.com) was created on plan free\n',
    })
    expect(stderr).toBe('New password: \nRepeat the password: \n')
    expect(modes).toEqual([true, false])
    expect(await opens('correct horse')).toBe(true)
  })

  it('`set-password` accepts corrections with backspace, and accepts both passwords if the operator pastes them together', async () => {
    expect(
      await ask(['set-password', ada], [['New password: ', 'battery stapel\x7f\x7fle\rbattery staple\r']]),
    ).toMatchObject({ exit: 0, stderr: 'New password: \nRepeat the password: \n', modes: [true, false] })
    expect(await opens('battery staple')).toBe(true)
  })

  it.each([
    ['differ', 'a password\r', 'another one\r', 'the passwords do not match; nothing was changed'],
    ['end with Ctrl-D', 'a password\r', '\x04', 'no input; nothing was changed'],
    ['end with Ctrl-C', 'a password\r', 'half\x03', 'no input; nothing was changed'],
  ])('`set-password` changes nothing if the answers %s', async (_how, first, second, sentence) => {
    const { exit, stdout, stderr, modes } = await ask(
      ['set-password', ada],
      [
        ['New password: ', first],
        ['Repeat the password: ', second],
      ],
    )
    expect({ exit, stdout }).toEqual({ exit: 1, stdout: '' })
    expect(stderr).toBe(`New password: \nRepeat the password: \nerror: ${sentence}\n`)
    expect(modes).toEqual([true, false])
    expect(await opens('battery staple')).toBe(true)
  })

  it('`set-password` refuses a short password immediately, without the second prompt', async () => {
    expect(await ask(['set-password', ada], [['New password: ', 'short\r']])).toMatchObject({
      exit: 1,
      stderr: 'New password: \nerror: the password is too short: use at least 8 characters\n',
    })
  })

  it('`set-password` does not prompt for the password of an unknown user', async () => {
    expect(await ask(['set-password', '77'], [])).toMatchObject({
      exit: 1,
      stderr: 'error: there is no user 77. Run peage users list to see all users.\n',
    })
  })

  const question = 'Delete user 1 (ada@example.com) and all of their data? [y/N] '

  it.each(['\n', 'n\n', 'yess\n', 'nay\n'])('`delete` removes nothing if the answer is %j', async typed => {
    expect(await ask(['delete', ada], [[question, typed]])).toMatchObject({
      exit: 1,
      stdout: '',
      stderr: `${question}error: nothing was deleted\n`,
      // The command does not use raw mode for this answer, so the terminal shows the answer.
      modes: [],
    })
    expect(await users(['show', ada])).toMatchObject({ exit: 0 })
  })

  it('`delete` removes the user if the answer is Yes', async () => {
    expect(await ask(['delete', ada], [[question, 'Yes\n']])).toEqual({
      exit: 0,
      stdout: 'user 1 (ada@example.com) was deleted\n',
      stderr: question,
      modes: [],
    })
    expect(await users(['show', ada])).toMatchObject({ exit: 1 })
  })
})
