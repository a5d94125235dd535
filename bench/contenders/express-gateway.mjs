// Express Gateway with its jwt policy: it believes the token's claims and looks no user up.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../ports.mjs'
import { run, startServer, temporaryFolder } from '../processes.mjs'
import { peerRow, publicKey } from './peer.mjs'

const name = 'Express Gateway jwt (no user look-up)'
const version = '1.16.11'

/**
 * @param {boolean} mayInstall into a temporary folder
 * @returns {import('../contender.mjs').Contender}
 */
export function expressGateway(mayInstall) {
  const { BENCH_EXPRESS_GATEWAY: given } = process.env
  const absence =
    'not looked for: npm install it somewhere and name that folder in BENCH_EXPRESS_GATEWAY, or --express-gateway'
  return {
    rows: [name],
    absence: () => (given || mayInstall ? undefined : absence),
    async start(stage) {
      const home = packageIn(given || (await install()))
      const port = await freePort()
      const { path: folder } = temporaryFolder()
      await configure(join(folder, 'config'), { home, port, stage })
      const program = join(folder, 'main.cjs')
      writeFileSync(
        program,
        `require(${JSON.stringify(home)})().load(${JSON.stringify(`${folder}/config`)}).run()`,
      )
      const proxy = await startServer(process.execPath, [program], {
        port,
        cwd: folder,
        // It would send what it proxies through a proxy that the environment names.
        env: {
          NODE_ENV: 'production',
          LOG_LEVEL: 'error',
          EG_DISABLE_CONFIG_WATCH: 'true',
          http_proxy: undefined,
          HTTP_PROXY: undefined,
        },
      })
      const { version } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'))
      return [peerRow(name, [proxy], stage, { version: `Express Gateway ${version}`, looksUsersUp: false })]
    },
  }
}

/** @param {string} folder */
function packageIn(folder) {
  const path = join(folder, 'node_modules', 'express-gateway')
  if (!existsSync(path)) throw new Error(`no express-gateway in ${folder}`)
  return path
}

async function install() {
  const { path: folder } = temporaryFolder()
  writeFileSync(join(folder, 'package.json'), '{"private":true}')
  const words = ['install', '--ignore-scripts', '--no-audit', '--no-fund', `express-gateway@${version}`]
  await run('npm', words, { cwd: folder })
  return folder
}

/**
 * @param {string} folder
 * @param {{ home: string, port: number, stage: import('../contender.mjs').Stage }} plan
 */
async function configure(folder, { home, port, stage }) {
  mkdirSync(join(folder, 'models'), { recursive: true })
  const models = join(home, 'lib', 'config', 'models')
  for (const file of ['applications', 'credentials', 'users']) {
    const text = readFileSync(join(models, `${file}.json`), 'utf8')
    writeFileSync(join(folder, 'models', `${file}.json`), text)
  }
  const key = join(folder, 'key.pem')
  writeFileSync(key, await publicKey(stage))
  writeFileSync(join(folder, 'system.config.yml'), readFileSync(join(home, 'lib/config/system.config.yml')))
  // Its jwt policy's list of algorithms knows no ES256; left out, those that fit the key are taken.
  writeFileSync(
    join(folder, 'gateway.config.yml'),
    `http: { port: ${port}, hostname: 127.0.0.1 }
apiEndpoints: { all: { host: '*' } }
serviceEndpoints: { service: { url: 'http://127.0.0.1:${stage.upstream.port}' } }
policies: [jwt, request-transformer, proxy]
pipelines:
  all:
    apiEndpoints: [all]
    policies:
      - jwt:
          action: { secretOrPublicKeyFile: ${key}, issuer: peage, audience: peage, checkCredentialExistence: false }
      - request-transformer:
          action:
            headers: { add: { x-user-id: req.user.sub, x-user-plan: req.user.plan } }
      - proxy:
          action: { serviceEndpoint: service }
`,
  )
}
