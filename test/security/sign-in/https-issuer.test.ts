// Starts the real program with https issuers. Tests a valid issuer, issuers that name http endpoints, and issuers at
// the host of Microsoft Entra ID.
import { spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { first, microsoft } from '../../support/certificates.ts'
import { type Claims, type CodeIssuer, startCodeIssuer } from '../../support/code-issuer.ts'
import type { Stores } from '../../support/gateway.ts'
import { type Program, startProgram } from '../../support/program.ts'
import { expectRefusal } from '../../support/refusals.ts'
import { poolSize } from '../../support/services.ts'
import { eitherSetup } from '../../support/setups.ts'
import {
  begin,
  CookieBrowser,
  exchange,
  expectPair,
  locationOf,
  newPage,
  newPerson,
  publicUrl,
  refusals,
  returnUrl,
  sendIdToken,
  startPath,
} from '../../support/sign-in.ts'

let folder: string
let stores: Stores
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'peage-https-issuer-'))
  stores = await eitherSetup().open()
  await writeFile(join(folder, 'ca.pem'), first.cert + microsoft.cert)
})
afterAll(async () => {
  await eitherSetup().drop(stores)
  await rm(folder, { recursive: true })
})

/**
 * @param issuers the URLs of the issuers, by provider name
 * @param before a command that starts the program, for example `unshare`
 */
async function start(issuers: Record<string, string>, before: readonly string[] = []): Promise<Program> {
  const file = join(folder, `gateway-${Object.keys(issuers)[0]}.yaml`)
  const providers = Object.entries(issuers).map(
    ([name, issuer]) => `${name}: { issuer: '${issuer}', client_id: client, client_secret: secret }`,
  )
  await writeFile(
    file,
    `server: { listen: '127.0.0.1:0', public_url: '${publicUrl}' }
admin: { listen: '127.0.0.1:0' }
storage: { postgres: '${stores.postgres}', redis: '${stores.redis}', data_dir: ${folder}/data, pool: ${poolSize} }
auth: { return_urls: ['${returnUrl}'], providers: { ${providers.join(', ')} } }
`,
  )
  return startProgram(file, { NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem') }, false, before)
}

async function stop(program: Program | undefined): Promise<void> {
  program?.child.kill('SIGTERM')
  await program?.ended
}

describe('an https issuer', () => {
  const members = ['authorization_endpoint', 'token_endpoint', 'userinfo_endpoint', 'jwks_uri'] as const
  const schemes = { loopback: 'http://127.0.0.1', name: 'http://localhost', plain: 'http://192.0.2.1' }
  let good: CodeIssuer
  let target: CodeIssuer
  const bad: Record<string, CodeIssuer> = {}
  let program: Program
  beforeAll(async () => {
    good = await startCodeIssuer({ tls: true })
    target = await startCodeIssuer()
    for (const member of members)
      for (const [scheme, origin] of Object.entries(schemes)) {
        const issuer = await startCodeIssuer({ tls: true })
        const { port } = new URL(target.url)
        issuer.discovery[member] = `${origin}:${port}${new URL(String(issuer.discovery[member])).pathname}`
        bad[`${scheme}-${member}`] = issuer
      }
    const urls = Object.entries(bad).map(([name, { url }]) => [name, url])
    program = await start({ good: good.url, ...Object.fromEntries(urls) })
  })
  afterAll(async () => {
    await stop(program)
    for (const issuer of [good, target, ...Object.values(bad)]) await issuer?.close()
  })

  it('signs users in over TLS, in a browser and in an app', async () => {
    const { browser, page, location } = await begin(program, { name: 'good' })
    const { pathname, search } = good.consent(location, newPerson())
    const { searchParams } = locationOf(await browser.get(program, pathname + search))
    const body = { code: searchParams.get('code'), code_verifier: page.verifier }
    expectPair(await exchange(program, body), 201)
    expectPair(await sendIdToken(program, { id_token: await good.idToken(newPerson()) }, 'good'), 201)
  })

  it('is refused if it names an http endpoint, and the endpoint gets no request', async () => {
    for (const [name, issuer] of Object.entries(bad)) {
      const answer = await new CookieBrowser().get(program, startPath(newPage(), name))
      expect([name, locationOf(answer).searchParams.get('error')]).toEqual([name, 'provider_unavailable'])
      const id_token = await issuer.idToken(newPerson())
      expectRefusal(await sendIdToken(program, { id_token }, name), ...refusals.unavailable)
    }
    expect(target.seen).toEqual([])
  })
})

const canMount = spawnSync('unshare', ['-m', 'true']).status === 0
if (!canMount) console.warn('skipped: Microsoft Entra ID: not root')

describe.skipIf(!canMount)('with Microsoft Entra ID,', () => {
  const tenant = '11111111-2222-3333-4444-555555555555'
  let issuer: CodeIssuer
  /** An issuer with the discovery document for all tenants: its `issuer` contains `{tenantid}` instead of a tenant. */
  let common: CodeIssuer
  let program: Program
  /** The URL of each issuer at the host of Microsoft. */
  const urls = new Map<CodeIssuer, string>()
  const relays: ReturnType<typeof createServer>[] = []

  /** Starts an issuer, and a TLS relay with the host name of Microsoft in front of it. */
  async function startAtMicrosoft(path: string): Promise<CodeIssuer> {
    const started = await startCodeIssuer({ path })
    const { origin, port } = new URL(started.url)
    const relay = createServer({ cert: microsoft.cert, key: microsoft.key }, socket => {
      const upstream = connect(Number(port), '127.0.0.1')
      for (const each of [socket, upstream]) each.on('error', () => {})
      socket.pipe(upstream).pipe(socket)
    })
    relays.push(relay)
    await new Promise<void>(resolve => relay.listen(0, '127.0.0.1', resolve))
    const host = `https://login.microsoftonline.com:${(relay.address() as AddressInfo).port}`
    const text = JSON.stringify(started.discovery).replaceAll(origin, host)
    Object.assign(started.discovery, JSON.parse(text))
    urls.set(started, host + path)
    return started
  }

  beforeAll(async () => {
    issuer = await startAtMicrosoft(`/${tenant}/v2.0`)
    common = await startAtMicrosoft(`/${tenant}/v2.0`)
    common.discovery.issuer = String(common.discovery.issuer).replace(tenant, '{tenantid}')
    const hosts = join(folder, 'hosts')
    await writeFile(hosts, '127.0.0.1 localhost login.microsoftonline.com\n')
    const command = ['unshare', '-m', 'sh', '-c', 'mount --bind "$0" /etc/hosts && exec "$@"', hosts]
    program = await start({ microsoft: String(urls.get(issuer)), common: String(urls.get(common)) }, command)
  })
  afterAll(async () => {
    await stop(program)
    for (const relay of relays) relay.close()
    for (const started of [issuer, common]) await started?.close()
  })

  const send = async (claims: Claims) => {
    const own = { iss: urls.get(issuer), tid: tenant, oid: 'x', ver: '2.0', email_verified: undefined }
    const id_token = await issuer.idToken({ ...newPerson(), ...own, ...claims })
    return sendIdToken(program, { id_token }, 'microsoft')
  }

  it.each([[true], ['true'], [1], ['1']])('an email with xms_edov %j counts as verified', async xms_edov => {
    expectPair(await send({ xms_edov }), 201)
  })

  it.each([[false], ['false'], [0], ['0'], [undefined], [null], [2], ['yes']])(
    'an email with xms_edov %j does not count as verified',
    async xms_edov => expectRefusal(await send({ xms_edov }), ...refusals.unverified),
  )

  it('an ID token of another tenant is refused', async () => {
    const other = '99999999-2222-3333-4444-555555555555'
    const own = String(urls.get(issuer))
    for (const iss of [
      own.replace(tenant, other),
      own.replace(tenant, '{tenantid}'),
      own.replace(tenant, 'common'),
      own.replace('/v2.0', ''),
      `${own}/`,
      own.replace('microsoftonline.com', 'microsoftonline.us'),
      `https://sts.windows.net/${tenant}/`,
      `https://login.microsoftonline.com/${tenant}/v2.0`,
    ])
      expectRefusal(await send({ iss, tid: other, xms_edov: true }), ...refusals.tokenInvalid)
  })

  it('an issuer with the discovery document of all tenants is refused', async () => {
    const id_token = await common.idToken({
      ...newPerson(),
      iss: urls.get(common),
      tid: tenant,
      xms_edov: true,
    })
    expectRefusal(await sendIdToken(program, { id_token }, 'common'), ...refusals.unavailable)
  })
})
