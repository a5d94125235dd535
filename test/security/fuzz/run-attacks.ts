// Runs the target `attacks`, which sends mutated attacks of the corpus to a running gateway and its upstream.
import { openArena } from './arena.ts'
import { runCampaign } from './campaign.ts'

interface Plan {
  readonly seed: number
  /** The time limit in milliseconds. */
  readonly within: number
  readonly cases: number
  readonly lanes: number
}

/** @returns true if no invariant was violated */
export async function runAttacks({ seed, within, cases, lanes }: Plan): Promise<boolean> {
  const startedAt = performance.now()
  const print = (cases: number) => {
    const seconds = (performance.now() - startedAt) / 1000
    console.log(`attacks: ${cases} cases in ${seconds.toFixed(0)} s (${(cases / seconds).toFixed(0)}/s)`)
  }
  const tabulate = (counts: Record<string, number>) =>
    Object.entries(counts)
      .sort(([a], [b]) => a.localeCompare(b))
      .map(([name, number]) => `${name}: ${number}`)
      .join(', ')

  console.log(`attacks: seed ${seed}, ${lanes} lanes`)
  const arena = await openArena({
    postgres: process.env.TEST_DATABASE_URL ?? '',
    redis: process.env.TEST_REDIS_URL ?? '',
  })
  const report = await runCampaign(arena, {
    seed,
    cases,
    lanes,
    within,
    onProgress: cases => cases % 10_000 === 0 && print(cases),
  })
  await arena.stop()

  print(report.cases)
  console.log(`by mutation: ${tabulate(report.byKind)}`)
  console.log(`by response: ${tabulate(report.byStatus)}`)
  console.log(
    `${report.upstream} requests at the upstream; seed ${seed}; breaches: ${report.breaches.length}`,
  )
  for (const { violations, kind, bytes } of report.breaches) {
    console.log(`\nBREACH (${kind})\n  ${violations.join('\n  ')}`)
    console.log(JSON.stringify(bytes))
    console.log(Buffer.from(bytes, 'latin1').toString('hex'))
  }
  return report.breaches.length === 0
}
