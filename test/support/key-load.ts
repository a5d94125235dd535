// Simulates users while the signing keys change. The users log in, send requests and refresh tokens at random replicas.
// Failures are recorded.
import { setTimeout as sleep } from 'node:timers/promises'
import { call, login, newUser } from './client.ts'
import type { TestGateway } from './gateway.ts'

export interface KeyLoad {
  /** The failures. For example, `call 401 KID` is a request that got a 401, with a token that the key KID signed. */
  readonly refused: string[]
  /** The IDs of the keys that signed the tokens, in the order of their first use. */
  readonly kids: Set<string>
  /** Resolves when this key has signed the current tokens of all users. */
  allHave(kid: string): Promise<void>
  /**
   * Resolves when all current requests have ended. After that, a replica that was removed before the call has no
   * requests left.
   */
  settled(): Promise<void>
  stop(): Promise<void>
}

/** @param replicas the replicas; the array is read again for each request, so a test can replace a replica in it */
export async function startKeyLoad(replicas: readonly TestGateway[], count: number): Promise<KeyLoad> {
  const refused: string[] = []
  const kids = new Set<string>()
  const kidsByUser = new Map<number, Set<string>>()
  const inTurn = new Set<Promise<void>>()
  let isStopped = false
  const next = () => replicas[Math.floor(Math.random() * replicas.length)] as TestGateway

  function accept(id: number, access: string, refresh: string) {
    kidsByUser.set(id, new Set([kidOf(access), kidOf(refresh)]))
    kids.add(kidOf(refresh)).add(kidOf(access))
    return { access, refresh }
  }

  async function live(user: Awaited<ReturnType<typeof newUser>>): Promise<void> {
    let pair = accept(user.id, user.access, user.refresh)
    const take = async (turn: number) => {
      const { access, refresh } = pair
      const called = await call(next().url, 'GET', '/any/x', { token: access })
      if (called.status !== 200) refused.push(`call ${called.status} ${kidOf(access)}`)
      if (turn % 7 === 0) {
        const { email, password, id } = user
        const fresh = await login(next().url, email, password)
        pair = accept(id, fresh.access, fresh.refresh)
      } else if (turn % 2 === 0) {
        const answer = await call(next().url, 'POST', '/api/v1/auth/refresh', {
          body: { refresh_token: refresh },
        })
        if (answer.status !== 200) throw new Error(`refresh ${answer.status} ${kidOf(refresh)}`)
        const { access_token, refresh_token } = answer.body
        pair = accept(user.id, String(access_token), String(refresh_token))
      }
    }
    for (let turn = 0; !isStopped; turn += 1) {
      const taken = take(turn)
      inTurn.add(taken)
      await taken.finally(() => inTurn.delete(taken))
      await sleep(5)
    }
  }

  const users = []
  for (let i = 0; i < count; i += 1) users.push(await newUser(next()))
  const living = users.map(user => live(user).catch(error => void refused.push(String(error))))
  return {
    refused,
    kids,
    async allHave(kid) {
      while ([...kidsByUser.values()].some(has => has.size !== 1 || !has.has(kid))) {
        if (refused.length > 0) throw new Error(refused.join('; '))
        await sleep(5)
      }
    },
    async settled() {
      await Promise.allSettled(inTurn)
    },
    async stop() {
      isStopped = true
      await Promise.all(living)
    },
  }
}

/** Returns the key ID of a token. */
export function kidOf(token: string): string {
  return JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()).kid
}
