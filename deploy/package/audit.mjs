// Checks the shipped packages for known vulnerabilities, and exits with 1 if there are any. If the registry does not
// respond, this program prints a message and exits with 0.
import { spawnSync } from 'node:child_process'

const { stdout, error } = spawnSync('npm', ['audit', '--omit=dev', '--json'], {
  encoding: 'utf8',
  timeout: 60_000,
  maxBuffer: 64 * 1024 * 1024,
})
const report = parse(stdout)
const total = report?.metadata?.vulnerabilities?.total
if (total === undefined) {
  console.log(
    `not audited: the registry did not respond (${report?.message ?? error?.message ?? 'not JSON'})`,
  )
} else {
  for (const { name, severity, range } of Object.values(report.vulnerabilities))
    console.log(`${severity}: ${name} ${range}`)
  console.log(`${total} vulnerabilities in ${report.metadata.dependencies?.prod ?? 'all'} packages`)
  process.exitCode = total === 0 ? 0 : 1
}

/** @param {string} text */
function parse(text) {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
