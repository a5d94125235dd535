// The gateway.yaml of the demo. It uses free ports and a temporary folder.

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
  smtp: log               # mails are printed to the log, from which the demo reads the code
  from: Demo <demo@example.com>
upstreams:
  demo:
    targets: [${upstream}]
routes:
  - name: courses          # one use per day with the plan free, unlimited with other plans
    path: /api/v1/courses/*
    upstream: demo
    free_daily: true
  - name: analyses         # only for the plan pro
    path: /api/v1/analyses/*
    upstream: demo
    plans: [pro]
  - name: news             # public
    path: /news
    upstream: demo
    auth: none
`
}
