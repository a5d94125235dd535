// Replaces the certificate files while the gateway runs, in the same way as Kubernetes.
import { once } from 'node:events'
import { copyFile, mkdir, mkdtemp, rename, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RawConnection, requestBytes } from '../security/raw-client.ts'
import { first, second, type TestCertificate, tlsSettings } from '../support/certificates.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { routes } from '../support/journey.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'

/** The gateway must use a changed certificate within this time. */
const soon = { timeout: 5_000, interval: 100 }

let folder: string
let upstream: Upstream
let gateway: TestGateway
/**
 * Kubernetes mounts each file of a secret as a link into `..data`. `..data` is a link to the folder of one version.
 */
const inFolder = (name: string) => join(folder, name)

async function mount(version: string, { cert, key }: TestCertificate['files']): Promise<void> {
  await mkdir(inFolder(version))
  await copyFile(cert, inFolder(`${version}/tls.crt`))
  await copyFile(key, inFolder(`${version}/tls.key`))
  await symlink(version, inFolder('..new'))
  await rename(inFolder('..new'), inFolder('..data'))
}

/** Returns the name in the certificate that a new connection receives. */
async function shown(): Promise<string> {
  const { hostname, port } = new URL(gateway.url)
  const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  const { CN } = socket.getPeerCertificate().subject
  socket.destroy()
  return /\((.*)\)/.exec(String(CN))?.[1] ?? ''
}

const logged = (sentence: string) => gateway.log.filter(line => line.includes(sentence)).length

describe('a renewed certificate', () => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'peage-tls-'))
    await mount('..1', first.files)
    await symlink('..data/tls.crt', inFolder('tls.crt'))
    await symlink('..data/tls.key', inFolder('tls.key'))
    upstream = await startUpstream()
    const server = tlsSettings({ cert: inFolder('tls.crt'), key: inFolder('tls.key') })
    gateway = await startGateway(routes(upstream.url), undefined, { server })
  })
  afterAll(async () => {
    await gateway?.stop()
    await upstream?.close()
    await rm(folder, { recursive: true, force: true })
  })

  it('is used for new connections at most 5 s after its link changes; open connections continue', async () => {
    const open = new RawConnection(gateway.url)
    open.write(requestBytes('GET', '/public/1'))
    expect((await open.answer())?.status).toBe(200)
    expect(await shown()).toBe('first')
    await mount('..2', second.files)
    await expect.poll(shown, soon).toBe('second')
    open.write(requestBytes('GET', '/public/2'))
    expect((await open.answer())?.status).toBe(200)
    open.close()
    expect(logged('new certificate in use')).toBe(1)
  })
})
