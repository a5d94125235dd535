// Runs the relay of test/support/stalling-relay.ts as a separate process.
import { startStallingRelay } from '../support/stalling-relay.ts'

const relay = await startStallingRelay(process.argv[2] ?? '')
process.on('message', message => {
  if (message === 'stall') relay.stall()
  else relay.flow()
})
process.once('disconnect', () => process.exit())
process.send?.(Number(new URL(relay.url).port))
