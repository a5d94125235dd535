// The gateway with routes that count uses of a quota. In one row, the quota has uses left. In the other row, the quota
// is used up.
import type { Contender } from '../contender.ts'
import { kinds, ours, rowName } from '../row-names.ts'
import { readQuotaUses } from './callers.ts'
import { countedRow, refusedRow, startGateway } from './gateway.ts'

const plans = `plans:
  - { name: free, quotas: { courses: 1000000000/month, exports: 1/month } }
  - { name: premium, quotas: { courses: unlimited, exports: unlimited } }
  - { name: pro, quotas: { courses: unlimited, exports: unlimited }, api_keys: 5, webhook: true }
`
const routes = `  - { path: /quota/*, upstream: service, quota: courses }
  - { path: /exhausted/*, upstream: service, quota: exports }
`

export const quotas: Contender = {
  rows: [rowName(ours, kinds.quotaCounted), rowName(ours, kinds.quotaExhausted)],
  async start(stage) {
    const gateway = await startGateway(stage, { plans, routes, crowded: 23 })
    return [
      countedRow(gateway, {
        name: rowName(ours, kinds.quotaCounted),
        folder: 'quota',
        readUses: () => readQuotaUses(gateway.callers.admin, gateway.callers.free.token, 'courses'),
      }),
      refusedRow(gateway, { name: rowName(ours, kinds.quotaExhausted), folder: 'exhausted' }),
    ]
  },
}
