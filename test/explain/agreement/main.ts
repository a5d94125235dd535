// Runs the long comparisons: `npm run agree -- [--pairs N] [--seed S]`. Compares `peage explain` with a gateway. Also
// compares the decision about a client's request with the decision about a proxy's question (docs/forward-auth.md).
// Exits with 1 if two results differ.
import { parseArgs } from 'node:util'
import { runBothWays } from '../../forward-auth/agreement/run.ts'
import { runAgreement } from './run.ts'

const { values } = parseArgs({ options: { pairs: { type: 'string' }, seed: { type: 'string' } } })
const pairs = Number(values.pairs ?? 10_000)
const seed = Number(values.seed ?? 20_261_121)
if (![pairs, seed].every(number => Number.isSafeInteger(number) && number > 0)) {
  console.error('--pairs and --seed must be positive whole numbers')
  process.exit(2)
}

const requests = Math.min(pairs, 200)
const configurations = Math.ceil(pairs / requests)
const startedAt = performance.now()
const seconds = () => ((performance.now() - startedAt) / 1000).toFixed(0)
console.log(`seed ${seed}: ${configurations} configurations, ${requests} requests to each`)
const onConfiguration = (count: number) =>
  count % 10 === 0 && console.log(`${count} configurations in ${seconds()} s`)
const plan = { seed, configurations, requests, onConfiguration }
const explained = await runAgreement(plan)
print(
  'explain',
  explained,
  explained.disagreements.map(({ question, ...rest }) => ({ ...rest, request: question })),
)
const bothWays = await runBothWays(plan)
print('forward auth', bothWays, bothWays.disagreements)
process.exit(explained.disagreements.length + bothWays.disagreements.length > 0 ? 1 : 0)

interface Disagreement {
  readonly differences: readonly string[]
  readonly request: object
  readonly yaml: string
}

function print(
  name: string,
  { outcomes }: { outcomes: Readonly<Record<string, number>> },
  disagreements: readonly Disagreement[],
): void {
  for (const { differences, request, yaml } of disagreements.slice(0, 10)) {
    console.log(`\nDISAGREEMENT\n  ${differences.join('\n  ')}\n${JSON.stringify(request)}\n${yaml}`)
  }
  for (const [outcome, count] of Object.entries(outcomes).sort(([, a], [, b]) => b - a)) {
    console.log(`${String(count).padStart(7)}  ${outcome}`)
  }
  const pairs = Object.values(outcomes).reduce((sum, count) => sum + count, 0)
  console.log(`${name}: ${pairs} pairs in ${seconds()} s; disagreements: ${disagreements.length}`)
}
