// The order of the test files: those that take longest begin first, one that computes beside one that waits.
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const folder = fileURLToPath(new URL('../', import.meta.url))

/** They use a processor or more for as long as they take. */
const computing = [
  'console/console',
  'journeys/workers',
  'journeys/reload-program',
  'commands/large-files',
  'journeys/traces-process',
  'security/upstream-behaviours',
  'commands/keys-reseal',
  'journeys/process',
  'storage/pglite/prepared-folder',
  'journeys/workers-connections',
  'journeys/reload',
  'security/mutations',
  'storage/pglite/pglite',
  'commands/users',
  'contracts/deliveries',
  'security/hostile-bodies',
  'config/load-properties',
  'contracts/migrations',
  'journeys/key-files',
  'openapi/conformance',
  'contracts/counted-batches',
  'commands/users-in-use',
  'journeys/first-rush',
  'journeys/key-rotation',
  'explain/agreement',
]

/** They wait for timers and time-outs. */
const waiting = [
  'journeys/password-reset',
  'security/malformed-behind-others',
  'journeys/changes',
  'journeys/open-streams',
  'commands/store-failure',
  'security/slow-clients',
  'upstream/targets/circuit-breaker',
  'security/pipelined-hand-overs',
  'webhooks/delivery/delivery-worker',
  'upstream/held-back',
  'storage/postgres/postgres',
  'journeys/email',
  'journeys/names',
  'deploy/prometheus',
  'storage/postgres/postgres-listener',
  'storage/redis/redis',
  'security/request-smuggling',
  'storage/postgres/postgres-warmup',
  'commands/keys',
  'journeys/events',
  'journeys/stores-failing',
  'server/drain',
  'upstream/failures',
  'upstream/targets/targets',
  'journeys/mails',
]

const first = computing
  .flatMap((name, place) => [name, waiting[place] ?? ''])
  .map(name => `${folder}${name}.test.ts`)

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    for (const file of first) if (!existsSync(file)) throw new Error(`${file} is not there any more`)
    const place = ({ moduleId }: TestSpecification) => first.indexOf(moduleId) + 1 || Infinity
    // A stable sort: among the others the usual order stays.
    return (await super.sort(files)).sort((a, b) => (place(a) < place(b) ? -1 : place(a) > place(b) ? 1 : 0))
  }
}
