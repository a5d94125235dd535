// Parses a Dockerfile into stages, each with its instructions. Unsupported syntax causes an error.

const known = new Set(
  'ENV WORKDIR COPY RUN VOLUME USER EXPOSE STOPSIGNAL HEALTHCHECK ENTRYPOINT CMD'.split(' '),
)

export interface Instruction {
  readonly name: string
  /** The text of the instruction after its name and flags. */
  readonly words: string
  readonly flags: Readonly<Record<string, string>>
  readonly line: number
}

export interface Stage {
  /** The name after AS, for `COPY --from` in later stages. If there is none, the index of the stage, counted from 0. */
  readonly name: string
  /** The text after FROM: a base image or the name of a previous stage. */
  readonly from: string
  readonly instructions: Instruction[]
}

export function readDockerfile(text: string): Stage[] {
  const stages: Stage[] = []
  for (const { words: whole, line } of joined(text)) {
    const [, name = '', rest = ''] = /^(\S+)\s+(.*)$/s.exec(whole) ?? []
    if (name === 'FROM') {
      const [, from = '', as = String(stages.length)] = /^(\S+)(?: AS (\S+))?$/.exec(rest) ?? []
      stages.push({ name: as, from, instructions: [] })
      continue
    }
    if (!known.has(name)) throw new Error(`Dockerfile:${line}: the replay does not support ${name}`)
    const { flags, words } = withoutFlags(rest)
    stages.at(-1)?.instructions.push({ name, words, flags, line })
  }
  return stages
}

/** Returns the words of an instruction that is written as a JSON array, for example `["start"]`. */
export function execForm(words: string): string[] {
  const parsed: unknown = JSON.parse(words)
  if (!Array.isArray(parsed)) throw new Error(`not in JSON form: ${words}`)
  return parsed
}

function* joined(text: string): Generator<{ words: string; line: number }> {
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

function withoutFlags(rest: string): { flags: Record<string, string>; words: string } {
  const flags: Record<string, string> = {}
  const words = rest.replace(/^(?:--[a-z-]+=\S+\s+)+/, found => {
    for (const [, name = '', value = ''] of found.matchAll(/--([a-z-]+)=(\S+)/g)) flags[name] = value
    return ''
  })
  return { flags, words }
}
