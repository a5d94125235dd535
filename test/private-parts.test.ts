// Tests that only three files use private parts of Node, V8 and packages, and that docs/dev/private-parts.md lists
// these uses.
import { readdirSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'

const root = new URL('../', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, root), 'utf8')

const internals = [
  'http/node-internals.ts',
  'storage/postgres/pg-internals.ts',
  'upstream/undici-internals.ts',
]

/**
 * Each pattern finds a kind of use of a private part. The patterns are applied to the code without comments and
 * strings.
 */
const signs: Record<string, RegExp> = {
  'a member with an underscore': /[.?]_[a-zA-Z]|\{(?:[^{}=:]*[,\s])?_[a-z]\w*(?=[,\s}])[^{}=]*\} =/,
  'a symbol of another module': /getOwnPropertySymbols|Symbol\.for\(|\.symbols\b|Reflect\.ownKeys/,
  'a flag of V8, or a binding of Node': /setFlagsFromString|\.binding\(|executionAsyncResource/,
  'an undocumented member of a connection':
    /\.(?:assignSocket|destroySoon|shouldKeepAlive|useChunkedEncodingByDefault)\b|\bparser\?: \{|_httpMessage/,
  "the parser of undici, or cluster's messages": /\bllhttp|internalMessage|NODE_CLUSTER/,
  'an undeclared member': /as unknown as (?:\{|Record<symbol)|declare module/,
  'a method replaced on an object of another module':
    /\b(?:client|pool|process|request|response|server|socket|worker)\.\w+ = (?:\(|async\b|\w+ =>|end\b)|\.prototype\.\w+ =/,
  'a property redefined on an object of another module':
    /defineProperty\(\w+\.|assign\((?:socket|connection|pool)\b/,
  'an option that pg does not document': /query_timeout: \w*[tT]imeoutMs/,
}
/** Finds imports of a package's internal files, except the two files that nodemailer documents. */
const deepImport =
  /(?:from|import\() ?'(?!nodemailer\/lib\/(?:mail-composer|smtp-connection))(?:@[^/']+\/)?[^/.:']+\/(?:lib|dist|src|build)\//

const files = readdirSync(new URL('src/', root), { recursive: true, encoding: 'utf8' }).filter(name =>
  name.endsWith('.ts'),
)

function codeOf(file: string): string {
  return read(`src/${file}`).replace(/^\s*(?:\/\/|\*|\/\*).*$/gm, '')
}

function signsIn(file: string): string[] {
  // The pattern for cluster messages is applied to code with strings, because it searches for the names of messages.
  const code = codeOf(file)
  const withoutStrings = code.replace(/'(?:\\.|[^'\\\n])*'/g, "''")
  return Object.entries(signs)
    .filter(([name, sign]) => sign.test(name.includes('cluster') ? code : withoutStrings))
    .map(([name]) => `${name}: ${file}`)
}

it('only three files in the source code use private parts of Node, V8 or packages', () => {
  expect(files.filter(file => !internals.includes(file)).flatMap(signsIn)).toEqual([])
  expect(files.filter(file => deepImport.test(codeOf(file)))).toEqual([])
})

it.each(internals)('the patterns of this test find private parts in %s', file => {
  expect(signsIn(file)).not.toEqual([])
})

it.each(internals)(
  'docs/dev/private-parts.md contains each exported function of %s, and each comment about a later removal links to an issue',
  file => {
    const page = read('docs/dev/private-parts.md')
    const uses = read(`src/${file}`).matchAll(
      /\/\*\*((?:(?!\*\/).)*)\*\/\s*(?:export )?(?:async )?function (\w+)/gs,
    )
    const exported = [...read(`src/${file}`).matchAll(/^export (?:async )?function (\w+)/gm)].map(
      match => match[1],
    )
    expect(exported.length).toBeGreaterThan(0)
    for (const name of exported) expect(page).toContain(`\`${name}\``)
    const explained = [...uses].filter(([, comment]) => /Remove this/.test(comment ?? ''))
    expect(explained.length).toBeGreaterThan(0)
    for (const [, comment] of explained) expect(comment).toMatch(/https:\/\/github\.com\//)
  },
)
