// The gateway with `server.forward_auth`. With this setting, another proxy asks the gateway whether a request is
// allowed. The gateway forwards nothing. In the benchmark, the load generator sends the questions.
import { allowsAs, givesRequestIds, refuses } from '../checks.ts'
import { bearer, type Contender, coursePath, host } from '../contender.ts'
import { kinds, ours, rowName } from '../row-names.ts'
import { startGateway } from './gateway.ts'

const name = rowName(ours, kinds.forwardAuth)

export const forwardAuth: Contender = {
  rows: [name],
  async start(stage) {
    const server = ', forward_auth: { from: [127.0.0.1] }'
    const { running, callers } = await startGateway(stage, { server })
    const { premium, inactive } = callers
    const about = (credential: Readonly<Record<string, string>>) => ({
      path: '/.peage/authorize',
      headers: {
        'x-forwarded-method': 'GET',
        'x-forwarded-uri': coursePath('guarded'),
        'x-forwarded-host': host,
        'x-forwarded-for': '192.0.2.1',
        ...credential,
      },
    })
    return [
      {
        name,
        running,
        question: about(bearer(premium.token)),
        status: 200,
        length: 0,
        // The load generator is slower than the gateway, so the gateway does not keep a core busy.
        fillsItsCore: false,
        checks: [
          givesRequestIds,
          allowsAs(premium),
          refuses('a request without a token gets 401', about({}), 401),
          refuses('an inactive user gets 401', about(bearer(inactive.token)), 401),
        ],
      },
    ]
  },
}
