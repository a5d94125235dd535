// Tests deploy/kubernetes: numbers and names that must match, and the gateway.yaml in the ConfigMap.
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
  it('starts the pod with a valid gateway.yaml from the ConfigMap', () => {
    expect(kustomization.configMapGenerator).toEqual([
      { name: 'peage', files: ['gateway.yaml=config/gateway.yaml'] },
    ])
    const mount = container.volumeMounts.find((one: Manifest) => one.name === 'config')
    expect(container.args).toEqual(['start', '-c', `${mount.mountPath}/gateway.yaml`])
    expect(config.upstreams).toHaveProperty('courses')
  })

  it('mounts its secrets as files that gateway.yaml refers to, and has no secrets in its environment', () => {
    const mount = container.volumeMounts.find((one: Manifest) => one.name === 'secrets')
    expect(Object.keys(secrets).every(path => path.startsWith(`${mount.mountPath}/`))).toBe(true)
    expect(pod.spec.volumes.find((one: Manifest) => one.name === 'secrets').secret.secretName).toBe('peage')
    expect(container.env.filter((one: Manifest) => one.valueFrom !== undefined)).toEqual([])
    expect(manifests.filter(({ kind }) => kind === 'Secret')).toEqual([])
  })

  it('mounts folders without subPath, because a subPath mount does not follow changes of the ConfigMap', () => {
    expect(container.volumeMounts.filter((one: Manifest) => one.subPath !== undefined)).toEqual([])
  })

  it('uses a headless Service for the upstream, so that the name of the Service resolves to all of its pods', () => {
    const { spec, metadata } = of('Service', 'courses')
    const [{ url } = { url: '' }] = config.upstreams.courses?.targets ?? []
    expect(new URL(url).hostname).toBe(`${metadata.name}.${kustomization.namespace}.svc`)
    expect(new URL(url).port).toBe(String(spec.ports[0].port))
    expect(spec.clusterIP).toBe('None')
    expect(spec.selector).toHaveProperty(['peage/upstream'], 'true')
    expect(config.upstreams.courses?.resolve).toMatchObject({ family: 'auto' })
  })

  it('gives a pod more time to stop than preStop and drain_timeout need together', () => {
    const [program, pause] = container.lifecycle.preStop.exec.command
    expect(program).toBe('sleep')
    const drain = config.server.drain_timeout / 1_000
    expect(pod.spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(Number(pause) + drain + 5)
  })

  it('probes /healthz and /readyz on the admin listener, which the kubelet can reach', () => {
    const ports = Object.fromEntries(container.ports.map((one: Manifest) => [one.name, one.containerPort]))
    expect(config.admin?.listen).toEqual({ host: '0.0.0.0', port: ports.admin })
    expect(config.server.listen).toEqual({ host: '0.0.0.0', port: ports.http })
    expect(container.livenessProbe.httpGet).toEqual({ path: '/healthz', port: 'admin' })
    expect(container.startupProbe.httpGet).toEqual({ path: '/healthz', port: 'admin' })
    expect(container.readinessProbe.httpGet).toEqual({ path: '/readyz', port: 'admin' })
  })

  it('waits longer for /readyz than the gateway needs to respond while a store hangs', () => {
    expect(container.readinessProbe.timeoutSeconds).toBeGreaterThan(2)
  })

  it('gives a migration at least five minutes before the pod is restarted', () => {
    const { periodSeconds, failureThreshold } = container.startupProbe
    expect(periodSeconds * failureThreshold).toBeGreaterThanOrEqual(300)
  })

  it('replaces pods one by one, and never removes all pods at once', () => {
    expect(deployment.spec.strategy.rollingUpdate).toEqual({ maxUnavailable: 0, maxSurge: 1 })
    expect(deployment.spec.replicas).toBeGreaterThan(of('PodDisruptionBudget', 'peage').spec.maxUnavailable)
  })

  it('runs as a user other than root, without capabilities, on a read-only root file system', () => {
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

  it('sets a V8 heap limit that is below the memory limit of the pod', () => {
    const heap = container.env.find((one: Manifest) => one.name === 'NODE_OPTIONS').value
    expect(Number(/=(\d+)$/.exec(heap)?.[1])).toBeLessThanOrEqual(0.8 * 1024)
    expect(container.resources.limits.memory).toBe('1Gi')
  })

  it('uses the labels of the gateway pods in every selector for these pods', () => {
    const selectors = [
      deployment.spec.selector.matchLabels,
      of('Service', 'peage').spec.selector,
      of('PodDisruptionBudget', 'peage').spec.selector.matchLabels,
      of('NetworkPolicy', 'gateway').spec.podSelector.matchLabels,
      ...pod.spec.topologySpreadConstraints.map((one: Manifest) => one.labelSelector.matchLabels),
    ]
    expect(selectors).toEqual(selectors.map(() => labels))
  })

  it('allows only the gateway to connect to upstreams, and only Prometheus to connect to the admin port', () => {
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
