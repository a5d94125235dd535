// Runs the demo's service on its own, for compose.yaml: `node dist/demo/serve-upstream.js`.
import { startDemoUpstream } from './upstream.ts'

const server = await startDemoUpstream({
  host: process.env.HOST ?? '0.0.0.0',
  port: Number(process.env.PORT ?? 9000),
})
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => server.close())
