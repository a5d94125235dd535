// The order of the test files: those that take longest begin first, one that computes beside one that waits.
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const folder = fileURLToPath(new URL('../', import.meta.url))

/** In each line one that uses a processor or more for as long as it takes, and one that waits for timers and time-outs. */
const first = [
  ['console/console', 'journeys/password-reset'],
  ['journeys/workers', 'security/malformed-behind-others'],
  ['journeys/reload-program', 'journeys/changes'],
  ['commands/large-files', 'journeys/open-streams'],
  ['journeys/traces-process', 'commands/store-failure'],
  ['security/upstream-behaviours', 'security/slow-clients'],
  ['commands/keys-reseal', 'upstream/targets/circuit-breaker'],
  ['journeys/process', 'security/pipelined-hand-overs'],
  ['commands/users-shown', 'server/drain'],
  ['storage/pglite/prepared-folder', 'webhooks/delivery/delivery-worker'],
  ['journeys/workers-connections', 'upstream/held-back'],
  ['journeys/reload', 'storage/postgres/postgres'],
  ['security/mutations', 'journeys/email'],
  ['storage/pglite/pglite', 'journeys/names'],
  ['commands/users', 'deploy/prometheus'],
  ['contracts/deliveries', 'storage/postgres/postgres-listener'],
  ['security/hostile-bodies', 'storage/redis/redis'],
  ['config/load-properties', 'security/request-smuggling'],
  ['contracts/migrations', 'storage/postgres/postgres-warmup'],
  ['journeys/key-files', 'commands/keys'],
  ['openapi/conformance', 'journeys/events'],
  ['contracts/counted-batches', 'journeys/stores-failing'],
  ['journeys/first-rush', 'upstream/failures'],
  ['journeys/key-rotation', 'upstream/targets/targets'],
  ['explain/agreement', 'journeys/mails'],
]
  .flat()
  .map(name => `${folder}${name}.test.ts`)

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    for (const file of first) if (!existsSync(file)) throw new Error(`${file} is not there any more`)
    const place = ({ moduleId }: TestSpecification) => first.indexOf(moduleId) + 1 || Infinity
    // A stable sort: among the others the usual order stays.
    return (await super.sort(files)).sort((a, b) => (place(a) < place(b) ? -1 : place(a) > place(b) ? 1 : 0))
  }
}
