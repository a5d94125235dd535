// Creates the gateway.yaml of the demo, with free ports and a temporary folder.

/**
 * @param {string} upstream the URL of the demo service
 * @param {string} dataDir a temporary folder
 * @param {string} adminToken the admin token of this run
 */
export function demoConfig(upstream, dataDir, adminToken) {
  return `server:
  listen: 127.0.0.1:0
  log: { requests: false }
admin:
  listen: 127.0.0.1:0
  token: ${adminToken}
  console: true
storage:
  data_dir: ${JSON.stringify(dataDir)}
mail:
  smtp: log               # written to the log, not sent; the demo reads the code from the log
  from: Demo <demo@example.com>
upstreams:
  demo:
    targets: [${upstream}]
routes:
  - name: courses          # one use a day for plan free, no limit for other plans
    path: /api/v1/courses/*
    upstream: demo
    free_daily: true
  - name: analyses         # plan pro only
    path: /api/v1/analyses/*
    upstream: demo
    plans: [pro]
  - name: news             # no account needed
    path: /news
    upstream: demo
    auth: none
`
}
