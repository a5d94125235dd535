// From any gateway.yaml, the gateway loads a configuration, or reports problems with line and column. It never crashes,
// reveals a secret or takes a long time.
import { readFileSync } from 'node:fs'
import { formatDiagnostic, type Problems } from '../../../../../src/config/diagnostics.ts'
import { loadConfig } from '../../../../../src/config/load.ts'
import { promise, type Target } from '../target.ts'

const secret = 'q7-secret-of-the-environment-q7'
const files = ['gateway.yaml', 'deploy/compose/config/gateway.yaml', 'deploy/kubernetes/config/gateway.yaml']

export const gatewayYaml: Target = {
  seeds: [
    // The sample files are split into sections, because a run with a whole file would take ten times as long.
    ...files.flatMap(name => readFileSync(name, 'latin1').split(/\n(?=[a-z])/)),
    'upstreams: { a: { targets: [http://127.0.0.1:1] } }\nroutes: [{ path: /x/*, upstream: a }]\n',
    'upstreams:\n  a: &a { targets: ["${SECRET}"], health: { path: /h } }\n  b: { <<: *a }\nroutes:\n  - { path: /x, upstream: b, plans: [pro], rewrite: /y }\n',
    'auth: { key_secret: "${SECRET}", issuer: "${FLAG:-x}" }\nstorage: { redis: "${file:/secret}" }\nroutes: []\n',
    'server: { workers: "${NUMBER}", cors: { origins: [https://a.example] } }\nlimits: { free_daily: ${NUMBER} }\ntests:\n  - { request: GET /x, expect: { status: 401 } }\n',
  ],
  dictionary: [
    ...[
      'routes',
      'upstreams',
      'targets',
      'path',
      'upstream',
      'server',
      'admin',
      'auth',
      'storage',
      'limits',
      'mail',
    ],
    ...[
      'events',
      'tests',
      'cors',
      'timeouts',
      'hosts',
      'methods',
      'plans',
      'rewrite',
      'allow_in_path',
      'rate_limit',
    ],
    ...[
      '${SECRET}',
      '${NUMBER}',
      '${FLAG:-',
      '${file:/secret}',
      '$${',
      '&a ',
      '*a',
      '<<: ',
      '- ',
      ': ',
      '{',
      '}',
      '[',
    ],
    ...[
      ']',
      '"',
      "'",
      '|\n ',
      '>-\n ',
      '# ',
      '!!str ',
      '!x ',
      '%YAML 1.1\n---\n',
      '---\n',
      '...\n',
      '? ',
      '\t',
      '~',
    ],
    ...[
      'null',
      'true',
      '0x1f',
      '1e3',
      '.inf',
      '10s',
      '1/1s',
      'http://127.0.0.1:1',
      '/a/:id/*',
      '"\\u0000"',
      '\xef\xbb\xbf',
    ],
    ...[
      '\r\n',
      '__proto__',
      'constructor',
      'auth: none',
      'tls: { cert: /secret, key: /secret }',
      'weight: 2',
      'split_by',
    ],
  ],
  maxLength: 1_500,
  maxMs: 1_000,
  covers: /\/src\/config\//,
  run(input) {
    const text = Buffer.from(input, 'latin1').toString('utf8')
    const loaded = load(text)
    if ('config' in loaded) {
      const { routes, upstreams, server } = loaded.config
      const hasForwardAuth = server.forward_auth !== undefined
      const names = routes.map(({ name }) => name)
      promise(new Set(names).size === names.length, 'accepts two routes with one name', names)
      for (const { upstream } of routes) {
        const isKnown = upstream === undefined ? hasForwardAuth : Object.hasOwn(upstreams, upstream)
        promise(isKnown, 'accepts a route to an unknown upstream', upstream)
      }
      checkPlaces(loaded.warnings, text)
      return `accepted${loaded.warnings.problems.length > 0 ? ', warned' : ''}`
    }
    promise(loaded.problems.length > 0, 'refuses a file without reporting a problem')
    checkPlaces(loaded, text)
    if (loaded.warnings !== undefined) checkPlaces(loaded.warnings, text)
    const [{ message } = { message: '' }] = loaded.problems
    return `refused: ${message.replace(/"[^"]*"|\d+/g, '…').slice(0, 40)}`
  },
}

function load(text: string) {
  return loadConfig({
    file: 'gateway.yaml',
    env: { SECRET: secret, NUMBER: '3', FLAG: '' },
    cores: 2,
    toServe: true,
    readFile(path) {
      if (path === 'gateway.yaml') return text
      if (path === '/secret') return `${secret}\n`
      throw Object.assign(new Error(path), { code: 'ENOENT' })
    },
  })
}

function checkPlaces({ problems }: Problems, text: string): void {
  const lines = text.replace(/^\ufeff/, '').split('\n')
  let before = { line: 1, column: 1 }
  for (const problem of problems) {
    const { line, column, message } = problem
    const width = lines[line - 1]?.length ?? -1
    promise(
      line >= 1 && column >= 1 && column <= width + 1,
      'reports a problem at a place outside the file',
      problem,
      width,
    )
    promise(
      line > before.line || (line === before.line && column >= before.column),
      'reports problems out of order',
    )
    promise(
      message !== '' && !/[\r\n]/.test(formatDiagnostic(problem)),
      'reports a problem whose text has several lines or is empty',
      problem,
    )
    promise(
      !formatDiagnostic(problem).includes(secret),
      'contains a secret in the text of a problem',
      problem,
    )
    before = { line, column }
  }
}
