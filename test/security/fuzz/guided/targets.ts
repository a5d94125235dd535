// The targets of the guided runs, by name.
import type { Target } from './target.ts'
import { openAuthBody } from './targets/auth-body.ts'
import { forwardedFor } from './targets/forwarded-for.ts'
import { gatewayYaml } from './targets/gateway-yaml.ts'
import { host } from './targets/host.ts'
import { openRequestHead } from './targets/request-head.ts'
import { requestTarget } from './targets/request-target.ts'
import { webSocketFrames } from './targets/websocket-frames.ts'

export const targets: Readonly<Record<string, () => Target | Promise<Target>>> = {
  'request-head': openRequestHead,
  'request-target': () => requestTarget,
  host: () => host,
  'forwarded-for': () => forwardedFor,
  'websocket-frames': () => webSocketFrames,
  'auth-body': openAuthBody,
  'gateway-yaml': () => gatewayYaml,
}
