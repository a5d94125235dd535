// Runs the long comparison: `npm run agree -- [--pairs N] [--seed S]`. Exits with 1 if explain and a gateway disagree.
import { parseArgs } from 'node:util'
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
const report = await runAgreement({
  seed,
  configurations,
  requests,
  onConfiguration: count => count % 10 === 0 && console.log(`${count} configurations in ${seconds()} s`),
})
for (const { differences, question, yaml } of report.disagreements.slice(0, 10)) {
  console.log(`\nDISAGREEMENT\n  ${differences.join('\n  ')}\n${JSON.stringify(question)}\n${yaml}`)
}
for (const [outcome, count] of Object.entries(report.outcomes).sort(([, a], [, b]) => b - a)) {
  console.log(`${String(count).padStart(7)}  ${outcome}`)
}
console.log(`${report.pairs} pairs in ${seconds()} s; disagreements: ${report.disagreements.length}`)
process.exit(report.disagreements.length > 0 ? 1 : 0)
