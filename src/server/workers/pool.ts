// Workers that serve in this process' stead: opened, asked, told and ended together (CONTRACT §2, `server.workers`).

import { inSlices } from '../../async/steps.ts'
import type { Opened } from '../../composition/dependencies.ts'
import { type PackedConfig, packSteps } from '../../config/reading/packed-config.ts'
import { worstOf } from '../../upstream/targets/target-status.ts'
import type { Serving } from '../serve.ts'
import { createLaunch } from './fork.ts'
import { createCounts } from './merged-metrics.ts'
import { patience, settling } from './protocol.ts'
import { createPost, type Post } from './supervisor.ts'

/** @throws Error with what kept the first worker that failed from listening; none is left then */
export async function serveByWorkers({ config: first, logger }: Opened): Promise<Serving> {
  let config = await inSlices(packSteps(first))
  const inForce = async () => {
    await Promise.all(posts.map(post => post.ask('catch_up', patience)))
  }
  const launch = createLaunch({ in_force: () => inForce().then(() => true) })
  const posts = Array.from({ length: first.server.workers }, () =>
    createPost({ launch, config: () => config, logger }),
  )
  const allCounts = createCounts()
  const abandon = () => {
    for (const post of posts) post.kill()
  }
  const end = async (time: number) => {
    await Promise.all(posts.map(post => post.end(time)))
  }
  try {
    const [address = ''] = await Promise.all(posts.map(post => post.open()))
    return {
      address,
      async prepare(given) {
        const next = await inSlices(packSteps(given))
        const settle = async (how: 'take' | 'drop') => {
          await Promise.all(posts.map(post => post.ask('settle', settling, how)))
        }
        const fault = await prepareInAll(posts, next)
        if (fault !== undefined) {
          await settle('drop')
          throw new Error(fault)
        }
        return {
          take() {
            // Whoever starts from now on starts with it.
            config = next
            return settle('take')
          },
          drop: () => settle('drop'),
        }
      },
      inForce,
      async standing() {
        const told = await Promise.all(posts.map(post => post.ask('standing', patience)))
        return worstOf(told.map(seen => seen ?? []))
      },
      workers: {
        health: () =>
          Promise.all(
            posts.map(async post => ({ pid: post.pid(), reach: await post.ask('reach', patience) })),
          ),
        async metrics() {
          const asked = posts.map(async post => ({
            pid: post.pid(),
            families: await post.ask('metrics', patience),
          }))
          return allCounts(await Promise.all(asked))
        },
      },
      drain: end,
      close: () => end(0),
      abandon,
    }
  } catch (error) {
    abandon()
    await end(0)
    throw error
  }
}

/**
 * What keeps one of them from it. Asked again where one began to serve meanwhile, in another's place: it did so with
 * what is in force now.
 */
async function prepareInAll(posts: readonly Post[], config: PackedConfig): Promise<string | undefined> {
  const asked = new Map<Post, number | undefined>()
  const unasked = () => posts.filter(post => post.pid() !== undefined && post.pid() !== asked.get(post))
  for (let those = unasked(); those.length > 0; those = unasked()) {
    for (const post of those) asked.set(post, post.pid())
    const faults = await Promise.all(those.map(post => prepareIn(post, config)))
    const fault = faults.find(said => said !== undefined)
    if (fault !== undefined) return fault
  }
  return undefined
}

/** What keeps the worker from it; whoever is not there, or not any more, starts with what is in force then. */
async function prepareIn(post: Post, config: PackedConfig): Promise<string | undefined> {
  const pid = post.pid()
  const answer = await post.ask('prepare', settling, config)
  if (answer === undefined && pid !== undefined && post.pid() === pid) return `worker ${pid} does not answer`
  return answer?.fault
}
