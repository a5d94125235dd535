// Tests compose.yaml and deploy/compose: networks, published ports, health checks and secrets.
import { describe, expect, it } from 'vitest'
import { configOf, type Manifest, read, seconds, secretsIn, yamlOf } from './read.ts'

const files = ['compose.yaml', 'deploy/compose/compose.yaml']

const secrets = secretsIn('/run/secrets', yamlOf('deploy/compose/compose.yaml').services.gateway.secrets)
const configs: Record<string, Manifest> = {
  'compose.yaml': configOf('gateway.yaml', {}),
  'deploy/compose/compose.yaml': configOf('deploy/compose/config/gateway.yaml', secrets),
}

describe.each(files)('%s', file => {
  const { services, networks, secrets: declared = {} } = yamlOf(file)
  const upstream = services.upstream ?? services.courses

  it('connects the upstream only to the gateway, through an internal network, and publishes no port of the upstream', () => {
    expect(upstream.ports).toBeUndefined()
    expect(upstream.networks.map((name: string) => networks[name])).toEqual([{ internal: true }])
    const members = Object.values<Manifest>(services).filter(one =>
      one.networks.includes(upstream.networks[0]),
    )
    expect(members).toHaveLength(2)
  })

  it('publishes only the port for clients, and only on the loopback interface', () => {
    const published = Object.values<Manifest>(services).flatMap(one => one.ports ?? [])
    expect(published).toEqual(['127.0.0.1:8080:8080'])
  })

  it('starts the gateway only after the stores are healthy', () => {
    for (const name of ['postgres', 'redis']) {
      expect(services[name].healthcheck.test[0]).toBe('CMD')
      expect(services.gateway.depends_on[name]).toEqual({ condition: 'service_healthy' })
    }
  })

  it('waits longer than the drain timeout before it kills the gateway', () => {
    const drain = configs[file].server.drain_timeout / 1_000
    expect(seconds(services.gateway.stop_grace_period)).toBeGreaterThanOrEqual(drain + 5)
  })

  it('declares every secret and network that a service uses', () => {
    for (const service of Object.values<Manifest>(services)) {
      for (const name of service.secrets ?? []) expect(declared).toHaveProperty(name)
      for (const name of service.networks) expect(networks).toHaveProperty(name)
    }
  })
})

describe('deploy/compose', () => {
  it('passes each secret of gateway.yaml as a file, and no password in the environment', () => {
    const named = [...read('deploy/compose/config/gateway.yaml').matchAll(/\/run\/secrets\/(\w+)/g)].map(
      ([path]) => path,
    )
    expect(named.sort()).toEqual(Object.keys(secrets).sort())
    expect(read('deploy/compose/compose.yaml')).not.toMatch(/PASSWORD:|SECRET:|TOKEN:/)
  })

  it('mounts the folder of gateway.yaml instead of the file, so that the gateway notices when the file is replaced', () => {
    const { gateway } = yamlOf('deploy/compose/compose.yaml').services
    expect(gateway.volumes).toEqual(['./config:/etc/peage:ro'])
    expect(gateway.working_dir).toBe('/etc/peage')
  })

  it('runs the gateway without capabilities, on a read-only root file system', () => {
    const { gateway } = yamlOf('deploy/compose/compose.yaml').services
    expect(gateway).toMatchObject({ read_only: true, cap_drop: ['ALL'] })
  })
})
