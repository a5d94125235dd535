// Reads a Dockerfile into stages of instructions: as much of the language as ours speaks, and an error for the rest.

const known = new Set(
  'ENV WORKDIR COPY RUN VOLUME USER EXPOSE STOPSIGNAL HEALTHCHECK ENTRYPOINT CMD'.split(' '),
)

/**
 * @param {string} text
 * @returns {import('./dockerfile.mjs').Stage[]}
 */
export function readDockerfile(text) {
  /** @type {import('./dockerfile.mjs').Stage[]} */
  const stages = []
  for (const { words: whole, line } of joined(text)) {
    const [, name = '', rest = ''] = /^(\S+)\s+(.*)$/s.exec(whole) ?? []
    if (name === 'FROM') {
      const [, from = '', as = String(stages.length)] = /^(\S+)(?: AS (\S+))?$/.exec(rest) ?? []
      stages.push({ name: as, from, instructions: [] })
      continue
    }
    if (!known.has(name)) throw new Error(`Dockerfile:${line}: ${name} is not replayed`)
    const { flags, words } = withoutFlags(rest)
    stages.at(-1)?.instructions.push({ name, words, flags, line })
  }
  return stages
}

/**
 * The words of an instruction in the JSON form.
 * @param {string} words
 * @returns {string[]}
 */
export function execForm(words) {
  const parsed = JSON.parse(words)
  if (!Array.isArray(parsed)) throw new Error(`not in the JSON form: ${words}`)
  return parsed
}

/** @param {string} text */
function* joined(text) {
  let words = ''
  let start = 0
  for (const [index, line] of text.split('\n').entries()) {
    if (/^\s*(#|$)/.test(line)) continue
    if (words === '') start = index + 1
    const isContinued = line.endsWith('\\')
    words += isContinued ? `${line.slice(0, -1).trimEnd()} ` : line
    if (isContinued) continue
    yield { words: words.replaceAll(/ {2,}/g, ' ').trim(), line: start }
    words = ''
  }
}

/** @param {string} rest */
function withoutFlags(rest) {
  /** @type {Record<string, string>} */
  const flags = {}
  const words = rest.replace(/^(?:--[a-z-]+=\S+\s+)+/, found => {
    for (const [, name = '', value = ''] of found.matchAll(/--([a-z-]+)=(\S+)/g)) flags[name] = value
    return ''
  })
  return { flags, words }
}
