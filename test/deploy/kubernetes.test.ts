// deploy/kubernetes: the numbers and names that must fit each other, and the gateway.yaml that the ConfigMap is made of.
import { describe, expect, it } from 'vitest'
import { configOf, documentsOf, type Manifest, secretsIn, yamlOf } from './read.ts'

const folder = 'deploy/kubernetes'
const kustomization = yamlOf(`${folder}/kustomization.yaml`)
const manifests: Manifest[] = kustomization.resources.flatMap((file: string) =>
  documentsOf(`${folder}/${file}`),
)
const of = (kind: string, name: string) =>
  manifests.find(manifest => manifest.kind === kind && manifest.metadata.name === name)
const deployment = of('Deployment', 'peage')
const pod = deployment.spec.template
const [container] = pod.spec.containers
const labels = pod.metadata.labels

const file = `${folder}/config/gateway.yaml`
const secrets = secretsIn('/run/secrets/peage', ['admin_token', 'database_url', 'redis_url', 'key_secret'])
const config = configOf(file, secrets)

describe('deploy/kubernetes', () => {
  it('has a gateway.yaml without a fault, which the ConfigMap is made of and the pod starts with', () => {
    expect(kustomization.configMapGenerator).toEqual([
      { name: 'peage', files: ['gateway.yaml=config/gateway.yaml'] },
    ])
    const mount = container.volumeMounts.find((one: Manifest) => one.name === 'config')
    expect(container.args).toEqual(['start', '-c', `${mount.mountPath}/gateway.yaml`])
    expect(config.upstreams).toHaveProperty('courses')
  })

  it('has its secrets as files, where gateway.yaml looks for them, and none in its environment', () => {
    const mount = container.volumeMounts.find((one: Manifest) => one.name === 'secrets')
    expect(Object.keys(secrets).every(path => path.startsWith(`${mount.mountPath}/`))).toBe(true)
    expect(pod.spec.volumes.find((one: Manifest) => one.name === 'secrets').secret.secretName).toBe('peage')
    expect(container.env.filter((one: Manifest) => one.valueFrom !== undefined)).toEqual([])
    expect(manifests.filter(({ kind }) => kind === 'Secret')).toEqual([])
  })

  it('mounts folders, since a file mounted by subPath is not replaced when the ConfigMap changes', () => {
    expect(container.volumeMounts.filter((one: Manifest) => one.subPath !== undefined)).toEqual([])
  })

  it('names the pods of the service behind by a headless Service, so that each is an address of the name', () => {
    const { spec, metadata } = of('Service', 'courses')
    const [{ url } = { url: '' }] = config.upstreams.courses?.targets ?? []
    expect(new URL(url).hostname).toBe(`${metadata.name}.${kustomization.namespace}.svc`)
    expect(new URL(url).port).toBe(String(spec.ports[0].port))
    expect(spec.clusterIP).toBe('None')
    expect(spec.selector).toHaveProperty(['peage/upstream'], 'true')
    expect(config.upstreams.courses?.resolve).toMatchObject({ family: 'auto' })
  })

  it('gives a pod longer to end than preStop and the drain take together', () => {
    const [program, pause] = container.lifecycle.preStop.exec.command
    expect(program).toBe('sleep')
    const drain = config.server.drain_timeout / 1_000
    expect(pod.spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(Number(pause) + drain + 5)
  })

  it('probes the admin listener, which is open to the kubelet: liveness the process, readiness the guards', () => {
    const ports = Object.fromEntries(container.ports.map((one: Manifest) => [one.name, one.containerPort]))
    expect(config.admin?.listen).toEqual({ host: '0.0.0.0', port: ports.admin })
    expect(config.server.listen).toEqual({ host: '0.0.0.0', port: ports.http })
    expect(container.livenessProbe.httpGet).toEqual({ path: '/healthz', port: 'admin' })
    expect(container.startupProbe.httpGet).toEqual({ path: '/healthz', port: 'admin' })
    expect(container.readinessProbe.httpGet).toEqual({ path: '/readyz', port: 'admin' })
  })

  it('waits for a readiness answer longer than the gateway takes for one when a store hangs', () => {
    expect(container.readinessProbe.timeoutSeconds).toBeGreaterThan(2)
  })

  it('lets a migration take minutes before it takes the pod for dead', () => {
    const { periodSeconds, failureThreshold } = container.startupProbe
    expect(periodSeconds * failureThreshold).toBeGreaterThanOrEqual(300)
  })

  it('replaces pods one by one and never takes all away', () => {
    expect(deployment.spec.strategy.rollingUpdate).toEqual({ maxUnavailable: 0, maxSurge: 1 })
    expect(deployment.spec.replicas).toBeGreaterThan(of('PodDisruptionBudget', 'peage').spec.maxUnavailable)
  })

  it('runs as nobody in particular, on a root that it cannot write to, without capabilities', () => {
    expect(pod.spec.securityContext).toMatchObject({
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
    })
    expect(pod.spec.automountServiceAccountToken).toBe(false)
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
  })

  it('leaves V8 a heap below the limit of the pod', () => {
    const heap = container.env.find((one: Manifest) => one.name === 'NODE_OPTIONS').value
    expect(Number(/=(\d+)$/.exec(heap)?.[1])).toBeLessThanOrEqual(0.8 * 1024)
    expect(container.resources.limits.memory).toBe('1Gi')
  })

  it('selects its own pods everywhere', () => {
    const selectors = [
      deployment.spec.selector.matchLabels,
      of('Service', 'peage').spec.selector,
      of('PodDisruptionBudget', 'peage').spec.selector.matchLabels,
      of('NetworkPolicy', 'gateway').spec.podSelector.matchLabels,
      ...pod.spec.topologySpreadConstraints.map((one: Manifest) => one.labelSelector.matchLabels),
    ]
    expect(selectors).toEqual(selectors.map(() => labels))
  })

  it('admits the gateway alone to upstreams, Prometheus alone to the admin port, and nobody elsewhere', () => {
    expect(of('NetworkPolicy', 'nobody-by-default').spec).toEqual({
      podSelector: {},
      policyTypes: ['Ingress'],
    })
    expect(of('NetworkPolicy', 'upstreams').spec.ingress).toEqual([
      { from: [{ podSelector: { matchLabels: labels } }] },
    ])
    const [open, guarded, ...others] = of('NetworkPolicy', 'gateway').spec.ingress
    expect(open).toEqual({ ports: [{ port: 'http' }] })
    expect(guarded.ports).toEqual([{ port: 'admin' }])
    expect(guarded.from).toHaveLength(1)
    expect(Object.keys(guarded.from[0])).toEqual(['namespaceSelector', 'podSelector'])
    expect(others).toEqual([])
    expect(of('Service', 'peage').spec.ports.map((one: Manifest) => one.targetPort)).toEqual(['http'])
  })
})
