// `node demo/serve-upstream.mjs` runs only the demo service, for compose.yaml.
import { startDemoUpstream } from './upstream.mjs'

const server = await startDemoUpstream({
  host: process.env.HOST ?? '0.0.0.0',
  port: Number(process.env.PORT ?? 9000),
})
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => server.close())
