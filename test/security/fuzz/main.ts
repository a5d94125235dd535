// `npm run fuzz -- [TARGET …] [--minutes N] [--seed S] [--cases N] [--lanes N] [--keep]`. Exits with 1 if it finds a
// violation.
import { parseArgs } from 'node:util'
import { runTarget } from './guided/run.ts'
import { targets } from './guided/targets.ts'
import { runAttacks } from './run-attacks.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: 'string' },
    seed: { type: 'string' },
    cases: { type: 'string' },
    lanes: { type: 'string' },
    keep: { type: 'boolean', default: false },
  },
})
const minutes = Number(values.minutes ?? (values.cases === undefined ? 10 : 60))
const seed = Number(values.seed ?? Date.now() % 1_000_000_000)
const cases = Number(values.cases ?? 1_000_000_000)
const lanes = Number(values.lanes ?? 64)
const all = ['attacks', ...Object.keys(targets)]
const asked = positionals.length === 0 ? all : positionals
if (![minutes, seed, cases, lanes].every(number => Number.isFinite(number) && number >= 0) || lanes < 1) {
  console.error('--minutes, --seed, --cases and --lanes must be numbers')
  process.exit(2)
}
const unknown = asked.find(name => !all.includes(name))
if (unknown !== undefined) {
  console.error(`unknown target: ${unknown}. Choose one of ${all.join(', ')}`)
  process.exit(2)
}

const rejections: unknown[] = []
process.on('unhandledRejection', reason => rejections.push(reason))
let isSound = true
for (const name of asked) {
  const within = minutes * 60_000
  const held =
    name === 'attacks'
      ? await runAttacks({ seed, within, cases, lanes })
      : await runTarget(name, { seed, within, cases, keeps: values.keep })
  isSound &&= held
}
for (const reason of rejections) console.log('unhandled rejection:', reason)
process.exit(isSound && rejections.length === 0 ? 0 : 1)
