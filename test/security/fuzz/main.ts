// The long run: `npm run fuzz -- --minutes N [--seed S] [--cases N] [--lanes N]`; exit status 1 on a breach.
import { parseArgs } from 'node:util'
import { openArena } from './arena.ts'
import { runCampaign } from './campaign.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string' },
    seed: { type: 'string' },
    cases: { type: 'string' },
    lanes: { type: 'string' },
  },
})
const minutes = Number(values.minutes ?? (values.cases === undefined ? 10 : 60))
const seed = Number(values.seed ?? Date.now() % 1_000_000_000)
const cases = Number(values.cases ?? 1_000_000_000)
const lanes = Number(values.lanes ?? 64)
if (![minutes, seed, cases, lanes].every(number => Number.isFinite(number) && number >= 0) || lanes < 1) {
  console.error('--minutes, --seed, --cases and --lanes take numbers')
  process.exit(2)
}

const startedAt = performance.now()
const print = (cases: number) => {
  const seconds = (performance.now() - startedAt) / 1000
  console.log(`${cases} cases in ${seconds.toFixed(0)} s (${(cases / seconds).toFixed(0)}/s)`)
}
const tabulate = (counts: Record<string, number>) =>
  Object.entries(counts)
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([name, number]) => `${name}: ${number}`)
    .join(', ')

console.log(`seed ${seed}, ${lanes} lanes`)
const rejections: unknown[] = []
process.on('unhandledRejection', reason => rejections.push(reason))
const arena = await openArena({
  postgres: process.env.TEST_DATABASE_URL ?? '',
  redis: process.env.TEST_REDIS_URL ?? '',
})
const report = await runCampaign(arena, {
  seed,
  cases,
  lanes,
  within: minutes * 60_000,
  onProgress: cases => cases % 10_000 === 0 && print(cases),
})
await arena.stop()

print(report.cases)
console.log(`by mutation: ${tabulate(report.byKind)}`)
console.log(`by answer: ${tabulate(report.byStatus)}`)
console.log(`${report.upstream} requests upstream; seed ${seed}; breaches: ${report.breaches.length}`)
for (const { violations, kind, bytes } of report.breaches) {
  console.log(`\nBREACH (${kind})\n  ${violations.join('\n  ')}`)
  console.log(JSON.stringify(bytes))
  console.log(Buffer.from(bytes, 'latin1').toString('hex'))
}
for (const reason of rejections) console.log('unhandled rejection', reason)
process.exit(report.breaches.length + rejections.length > 0 ? 1 : 0)
