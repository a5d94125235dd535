// Summarises a statement as operations and tables (`db.query.summary`), so that span names stay few.

/** A writing statement's writes, otherwise the table that it reads first. `update users` → `UPDATE users`. */
export function summaryOf(text: string): string {
  const known = summaries.get(text)
  if (known !== undefined) return known
  const summary = summarize(text)
  // All texts are constants of the program; should that change, the cache must not grow without end.
  if (summaries.size >= 500) summaries.clear()
  summaries.set(text, summary)
  return summary
}

const summaries = new Map<string, string>()

// Excludes the locks and conflicts that end in the same word: `for update`, `for no key update`, `do update`.
const writes = /(?<!\b(?:for|key|do) )\b(insert into|update|delete from|lock table) ([a-z_]+)/g

function summarize(text: string): string {
  const flat = text.replace(/\s+/g, ' ').trim().toLowerCase()
  const found = [...flat.matchAll(writes)].map(([, verb = '', table]) => `${firstOf(verb)} ${table}`)
  if (found.length > 0) return found.join(' ')
  const [, table] = /\bfrom ([a-z_]+)/.exec(flat) ?? []
  const verb = flat.startsWith('with ') ? 'SELECT' : firstOf(flat)
  return table === undefined ? verb : `${verb} ${table}`
}

function firstOf(words: string): string {
  return (words.split(' ', 1)[0] ?? '').toUpperCase()
}
