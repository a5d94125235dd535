// Checks the subjects of commits against docs/dev/style.md. Merges are not checked. The commit that added this page,
// and all older commits, are not checked either.
import { execFileSync } from 'node:child_process'

const types = ['feat', 'fix', 'docs', 'test', 'refactor', 'perf', 'build', 'ci', 'chore', 'style', 'revert']
const conventional = new RegExp(`^(?:${types.join('|')})(?:\\([\\w,./-]+\\))?!?: \\S`)
const longest = 72

/** @param {string[]} options */
const log = (...options) =>
  execFileSync('git', ['log', ...options], { encoding: 'utf8' })
    .trim()
    .split('\n')

// A shallow clone lacks the commit that added the page. In a shallow clone, git reports the oldest commit instead,
// because that commit seems to add every file.
const first = log('--diff-filter=A', '--format=%H', '--', 'docs/dev/style.md').at(-1)
if (!first) throw new Error('the history does not contain docs/dev/style.md')
const commits = log('--no-merges', '--format=%h %s', `${first}..HEAD`).filter(line => line !== '')
const wrong = commits.filter(line => {
  const subject = line.slice(line.indexOf(' ') + 1)
  return !conventional.test(subject) || subject.length > longest
})
for (const line of wrong) console.error(line)
console.log(`${commits.length} commit subjects checked, ${wrong.length} wrong`)
if (wrong.length > 0) {
  console.error(`Write "type(scope): text" with at most ${longest} characters. Types: ${types.join(', ')}.`)
  process.exitCode = 1
}
