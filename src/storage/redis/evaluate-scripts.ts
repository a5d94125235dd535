// Runs scripts by their SHA-1. Sends several scripts in one pipeline, so all of them together need one write and one
// read.
import { type Cluster, Redis } from 'ioredis'
import type { Script } from './redis-scripts.ts'

export interface ScriptCall {
  readonly script: Script
  readonly keys: readonly string[]
  readonly args: readonly (string | number)[]
}

/**
 * Runs all calls. Resolves when all of them have settled. The result contains one promise per call, in the order of the
 * calls. The promise of a failed call is rejected.
 */
export async function evaluateAll(
  client: Redis | Cluster,
  calls: readonly ScriptCall[],
): Promise<Promise<unknown>[]> {
  // On a Cluster, the calls are not pipelined, because each call goes to the node of its key.
  const isPipelined = calls.length > 1 && client instanceof Redis
  const results = isPipelined
    ? await evaluatePipelined(client, calls)
    : calls.map(call => orEval(client, call, client.evalsha(call.script.sha, 1, ...call.keys, ...call.args)))
  await Promise.allSettled(results)
  return results
}

/**
 * Runs the script with one call for all keys. On a Cluster, makes one call per key, because the keys may be on
 * different nodes.
 */
export async function evaluateForAll(
  client: Redis | Cluster,
  script: Script,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<unknown[]> {
  if (!(client instanceof Redis) && keys.length > 1) {
    const lists = await Promise.all(keys.map(key => evaluateForAll(client, script, [key], args)))
    return lists.flat()
  }
  const replies = client.evalsha(script.sha, keys.length, ...keys, ...args)
  return (await orEval(client, { script, keys, args }, replies)) as unknown[]
}

async function evaluatePipelined(client: Redis, calls: readonly ScriptCall[]): Promise<Promise<unknown>[]> {
  const pipeline = client.pipeline()
  for (const { script, keys, args } of calls) pipeline.evalsha(script.sha, 1, ...keys, ...args)
  const replies = (await pipeline.exec()) ?? []
  return calls.map((call, index) => {
    const [error, reply] = replies[index] ?? [new Error('no reply')]
    return orEval(client, call, error === null ? Promise.resolve(reply) : Promise.reject(error))
  })
}

/**
 * Waits for the reply. If the server does not have the script, for example after a restart, sends the source of the
 * script.
 */
async function orEval(client: Redis | Cluster, { script, keys, args }: ScriptCall, reply: Promise<unknown>) {
  try {
    return await reply
  } catch (error) {
    if (!messageOf(error).startsWith('NOSCRIPT')) throw error
    return client.eval(script.lua, keys.length, ...keys, ...args)
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
