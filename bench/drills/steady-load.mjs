// A steady load in a process of its own, so that nothing that the drill does delays it: asked for windows, answers with the slowest.
import { startLoad } from './load.mjs'

process.on('message', async ({ port, perSecond, seconds, headers = {} }) => {
  const load = startLoad(port, { perSecond, headers })
  await new Promise(resolve => setTimeout(resolve, seconds * 1_000))
  const { worst, p99, ownStall } = await load.stop()
  process.send?.({ done: load.done, failures: load.failures, worst, p99, ownStall })
})
process.once('disconnect', () => process.exit())
