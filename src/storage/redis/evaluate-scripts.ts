// Runs scripts by their SHA-1, several in one pipeline: one write and one read for all of them.
import { type Cluster, Redis } from 'ioredis'
import type { Script } from './redis-scripts.ts'

export interface ScriptCall {
  readonly script: Script
  readonly key: string
  readonly args: readonly (string | number)[]
}

/** Resolves when all have settled, with one result per call in their order: a call that failed is a rejected promise. */
export async function evaluateAll(
  client: Redis | Cluster,
  calls: readonly ScriptCall[],
): Promise<Promise<unknown>[]> {
  // On a Cluster each goes to the node of its key.
  const isPipelined = calls.length > 1 && client instanceof Redis
  const results = isPipelined
    ? await evaluatePipelined(client, calls)
    : calls.map(call => orEval(client, call, client.evalsha(call.script.sha, 1, call.key, ...call.args)))
  await Promise.allSettled(results)
  return results
}

async function evaluatePipelined(client: Redis, calls: readonly ScriptCall[]): Promise<Promise<unknown>[]> {
  const pipeline = client.pipeline()
  for (const { script, key, args } of calls) pipeline.evalsha(script.sha, 1, key, ...args)
  const replies = (await pipeline.exec()) ?? []
  return calls.map((call, index) => {
    const [error, reply] = replies[index] ?? [new Error('no reply')]
    return orEval(client, call, error === null ? Promise.resolve(reply) : Promise.reject(error))
  })
}

/** Sends the source where the server does not have it: it was restarted or replaced. */
async function orEval(client: Redis | Cluster, { script, key, args }: ScriptCall, reply: Promise<unknown>) {
  try {
    return await reply
  } catch (error) {
    if (!messageOf(error).startsWith('NOSCRIPT')) throw error
    return client.eval(script.lua, 1, key, ...args)
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
