// Keeps `process.nextTick` fast. V8 forgets an object's shape once no object has it; a collection that finds no tick
// waiting has Node's compiled code give up on the next ones' shape for good, which takes a tenth of a request's time.
import { executionAsyncResource } from 'node:async_hooks'

/** Node's record of one tick: it keeps the shape of all of them. */
export let tickRecord: object | undefined

process.nextTick(() => {
  tickRecord = executionAsyncResource()
})
