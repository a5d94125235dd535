// Runs the demo's service on its own, for compose.yaml: `node demo/serve-upstream.mjs`.
import { startDemoUpstream } from './upstream.mjs'

const server = await startDemoUpstream({
  host: process.env.HOST ?? '0.0.0.0',
  port: Number(process.env.PORT ?? 9000),
})
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => server.close())
