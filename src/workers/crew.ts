// Workers that serve in this process' stead: opened, asked, told and ended together (CONTRACT §2, `server.workers`).
import type { Opened } from '../opened.ts'
import type { Serving } from '../serving.ts'
import { worstOf } from '../upstream/standing.ts'
import { createCounts } from './counts.ts'
import { createLaunch } from './launch.ts'
import { createPost } from './post.ts'
import { patience } from './questions.ts'

/** @throws Error with what kept the first worker that failed from listening; none is left then */
export async function serveByWorkers({ config, logger }: Opened): Promise<Serving> {
  const inForce = async () => {
    await Promise.all(posts.map(post => post.ask('catch_up', patience)))
  }
  const launch = createLaunch({ in_force: () => inForce().then(() => true) })
  const posts = Array.from({ length: config.server.workers }, () => createPost({ launch, config, logger }))
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
