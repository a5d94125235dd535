// What a process takes for what it remembers of each kind.
import { fileURLToPath } from 'node:url'
import { run } from '../processes.mjs'

const count = 100_000

/** The kinds of serve-memory.mjs; with `users` or `tokens` of `auth.remember` each is bounded by. */
const kinds = {
  user: 'users',
  'user, longest email': 'users',
  key: 'users',
  'spent day': 'users',
  session: 'tokens',
  'token of 500 bytes': 'tokens',
  'token of 4 KiB': 'tokens',
}

/** @type {import('./main.mjs').Part} */
export async function memory({ say, table }) {
  const rows = []
  for (const [kind, bound] of Object.entries(kinds)) {
    const { bytes, pause } = await filled(kind, count)
    rows.push([kind, bound, round(bytes / count), round(pause)])
  }
  table(['remembered', 'bounded by', 'bytes of one', 'full GC, ms'], rows)
  say(`\n${count.toLocaleString('en')} of each, in a process of its own.`)
}

/** @returns {Promise<{ bytes: number, pause: number }>} bytes, milliseconds */
async function filled(kind, many) {
  const program = fileURLToPath(new URL('serve-memory.mjs', import.meta.url))
  return JSON.parse(await run(process.execPath, ['--expose-gc', program, kind, String(many)]))
}

const round = number => Number(number.toFixed(0))
