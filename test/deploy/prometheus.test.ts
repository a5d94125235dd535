// Tests deploy/prometheus and deploy/grafana: each alert fires for its problem, and each query finds data of a gateway.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { anchorsOf } from '../docs/check/links.ts'
import { call, newUser } from '../support/client.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { routes } from '../support/journey.ts'
import { mailSection } from '../support/mailed.ts'
import { type Prometheus, startPrometheus } from '../support/prometheus.ts'
import { describeWithPromtool, describeWithServices } from '../support/services.ts'
import { services } from '../support/setups.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { type Manifest, pathOf, read, yamlOf } from './read.ts'

const rules: Manifest[] = yamlOf('deploy/prometheus/alerts.yml').groups.flatMap(
  (group: Manifest) => group.rules,
)
const panels: Manifest[] = JSON.parse(read('deploy/grafana/dashboard.json')).panels.filter(
  ({ type }: Manifest) => type !== 'row',
)
const queries: [title: string, expression: string][] = panels.flatMap(({ title, targets }) =>
  targets.map(({ expr }: Manifest) => [title, expr]),
)

/** Replaces the variables in a query, as Grafana does. */
function filledIn(expression: string): string {
  return expression
    .replaceAll('$job', 'peage')
    .replaceAll('$instance', '.+')
    .replaceAll('$__rate_interval', '10s')
}

describe('every alert rule', () => {
  it('has a severity and a link to a section that exists', () => {
    expect(rules.length).toBeGreaterThan(15)
    for (const { alert, labels, annotations } of rules) {
      expect([alert, labels.severity]).toEqual([alert, expect.stringMatching(/^(page|ticket)$/)])
      const [page = '', anchor] = annotations.runbook.split('#')
      expect([alert, existsSync(pathOf(page))]).toEqual([alert, true])
      if (anchor !== undefined)
        expect([alert, anchorsOf(pathOf(page))]).toEqual([alert, expect.arrayContaining([anchor])])
    }
  })

  it('has a test in which its problem exists, and a test with a healthy gateway', () => {
    const names = rules.map(({ alert }) => alert)
    const [well, ...tests] = yamlOf('deploy/prometheus/alerts.test.yml').tests
    expect(well.alert_rule_test.map((one: Manifest) => one.alertname)).toEqual(names)
    expect(tests.map((one: Manifest) => one.alert_rule_test[0].alertname)).toEqual(names)
  })
})

describeWithPromtool('promtool', () => {
  it.each([
    'check rules deploy/prometheus/alerts.yml',
    'test rules deploy/prometheus/alerts.test.yml',
    'check config deploy/prometheus/prometheus.yml',
  ])('with the arguments "%s" finds no problem', words => {
    const { status, stdout, stderr } = spawnSync(inject('promtoolBin'), words.split(' '), {
      cwd: pathOf('.'),
      encoding: 'utf8',
    })
    expect([status, status === 0 ? '' : stdout + stderr]).toEqual([0, ''])
  })

  describeWithServices('a Prometheus that scrapes a gateway with some traffic', () => {
    let gateway: TestGateway
    let upstream: Upstream
    let prometheus: Prometheus
    let stores: Awaited<ReturnType<typeof services.open>>
    let traffic: NodeJS.Timeout
    beforeAll(async () => {
      stores = await services.open()
      upstream = await startUpstream()
      gateway = await startGateway(routes(upstream.url) + mailSection(), stores)
      prometheus = await startPrometheus(inject('promtoolBin'), gateway.admin)
      const { access } = await newUser(gateway)
      traffic = setInterval(() => {
        for (const path of ['/any/1', '/courses/1', '/pro', '/down']) {
          call(gateway.url, 'GET', path, { token: access }).catch(() => {})
        }
        call(gateway.url, 'GET', '/any/1').catch(() => {})
        const body = { email: 'nobody@example.com', password: 'wrong password' }
        call(gateway.url, 'POST', '/api/v1/auth/login', { body }).catch(() => {})
      }, 250)
    })
    afterAll(async () => {
      clearInterval(traffic)
      await prometheus?.stop()
      await gateway?.stop()
      await upstream?.close()
      if (stores !== undefined) await services.drop(stores)
    })

    it.each(queries)('has data for the panel "%s" (%s)', async (_, expression) => {
      await expect
        .poll(() => prometheus.count(filledIn(expression)), { timeout: 20_000, interval: 250 })
        .toBeGreaterThan(0)
    })

    // Alert expressions are comparisons, which return nothing for a healthy gateway. So the test queries only the left
    // side of each comparison.
    const compared = rules.flatMap(({ alert, expr }) =>
      (expr as string).split(/ and /).map(part => [alert as string, part.split(/ (?:==|>) /)[0] as string]),
    )
    it.each(compared)('has data for the alert %s (%s)', async (_, expression) => {
      await expect
        .poll(() => prometheus.count(String(expression).replaceAll(/\[\d+m\]/g, '[10s]')), {
          timeout: 20_000,
          interval: 250,
        })
        .toBeGreaterThan(0)
    })
  })
})
