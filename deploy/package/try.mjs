// Tests the npm package: packs it, installs it in an empty folder, and runs its commands there.
//
// When npm installs a tarball, it ignores the shrinkwrap of the package. It installs the newest versions that the
// ranges in package.json allow. So this test also fails if a new version of a dependency does not work.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { tooNew } from './pinned.mjs'

const repository = fileURLToPath(new URL('../..', import.meta.url))
const work = mkdtempSync(join(tmpdir(), 'peage-package-'))
const folder = join(work, 'empty')
// The package must not use the Postgres and Redis of this machine, so their variables are removed.
const { DATABASE_URL: _, REDIS_URL: __, ...env } = process.env
process.exitCode = 1
try {
  mkdirSync(folder)
  const tarball = pack()
  lookInto(tarball)
  run('npm', ['install', '--no-audit', '--no-fund', tarball])
  const own = read(join(folder, 'node_modules/peage/package.json'))
  const installed = read(join(folder, 'node_modules/.package-lock.json'))
  check(
    'every dependency supports the lowest Node versions that Péage supports',
    [],
    tooNew({ packages: { '': own, ...installed.packages } }),
  )
  await tryOut()
  process.exitCode = 0
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
} finally {
  rmSync(work, { recursive: true, force: true })
}

/**
 * Packs a copy of the repository. Packing runs a build. In the repository itself, the build would replace files that
 * may be in use.
 */
function pack() {
  const copy = join(work, 'copy')
  const listed = execFileSync('git', ['ls-files', '-z', '-co', '--exclude-standard'], { cwd: repository })
  for (const name of String(listed).split('\0')) {
    if (name !== '' && existsSync(join(repository, name))) cpSync(join(repository, name), join(copy, name))
  }
  symlinkSync(join(repository, 'node_modules'), join(copy, 'node_modules'))
  const [{ filename }] = JSON.parse(
    String(
      execFileSync('npm', ['pack', '--json', '--silent', '--pack-destination', work], { cwd: copy, env }),
    ),
  )
  return join(work, filename)
}

/** @param {string} tarball */
function lookInto(tarball) {
  const names = String(execFileSync('tar', ['tzf', tarball]))
    .trim()
    .split('\n')
  check(
    'the package contains no source maps',
    [],
    names.filter(name => name.endsWith('.map')),
  )
  check(
    'the package contains the prepared database',
    true,
    names.includes('package/dist/storage/pglite/prepared-database'),
  )
  check(
    'the package contains the list of common passwords',
    true,
    names.includes('package/assets/common-passwords.txt'),
  )
  /** @param {string} name */
  const textOf = name => String(execFileSync('tar', ['xzOf', tarball, `package/${name}`]))
  /** @type {import('./pinned.mjs').Lock} */
  const { packages } = JSON.parse(textOf('npm-shrinkwrap.json'))
  const unpinned = Object.entries(packages).filter(
    ([path, { version, integrity }]) => path && !(version && integrity),
  )
  check(
    'every dependency is pinned by version and digest',
    [],
    unpinned.map(([path]) => path),
  )
  /** @type {{ components: { name: string, version: string }[] }} */
  const { components } = JSON.parse(textOf('sbom.cdx.json'))
  const listed = components.map(({ name, version }) => `${name}@${version}`)
  const brought = Object.entries(packages)
    .filter(([path]) => path)
    .map(([path, { version }]) => `${path.replace(/^.*node_modules\//, '')}@${version}`)
  /** @param {string[]} names */
  const sorted = names => [...new Set(names)].sort()
  check('the SBOM lists exactly the pinned dependencies', sorted(brought), sorted(listed))
  const links = [...textOf('README.md').matchAll(/\]\(([^):#]+)[^)]*\)/g)].map(([, target = '']) => target)
  /** @param {string} target */
  const isThere = target => names.some(name => name.startsWith(`package/${target}`))
  check(
    'the package contains every page that README links to',
    [],
    links.filter(target => !isThere(target)),
  )
}

async function tryOut() {
  run('npx', ['--no', 'peage', 'init'])
  const [, schema = ''] = /\$schema=(\S+)/.exec(readFileSync(join(folder, 'gateway.yaml'), 'utf8')) ?? []
  check('the schema of the sample configuration exists', true, existsSync(join(folder, schema)))
  run('npx', ['--no', 'peage', 'check'])
  const program = join(folder, 'node_modules/.bin/peage')
  const listen = { HOST: '127.0.0.1', PORT: '0', ADMIN_LISTEN: '127.0.0.1:0' }
  const child = spawn(program, ['start'], {
    cwd: folder,
    env: { ...env, ...listen },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const ended = once(child, 'exit')
    const answer = await fetch(`${await addressOf(child)}/api/v1/auth/register`, {
      method: 'POST',
      body: JSON.stringify({ email: 'ada@example.com', password: 'correct horse battery' }),
    })
    check('an account can be registered', 201, answer.status)
    child.kill('SIGTERM')
    check('the gateway exits with status 0', 0, (await ended)[0])
  } finally {
    child.kill('SIGKILL')
  }
  run('npx', ['--no', 'peage', 'users', 'list'])
}

/**
 * Resolves with the address in the ready line.
 * @param {import('node:child_process').ChildProcessByStdio<null, import('node:stream').Readable, null>} child
 * @throws Error if the gateway ends before it is ready
 */
function addressOf(child) {
  return new Promise((resolve, reject) => {
    let log = ''
    child.stdout.setEncoding('utf8').on('data', chunk => {
      log += chunk
      const [, address] = /"address":"([^"]+)"/.exec(log) ?? []
      if (address !== undefined) resolve(address)
    })
    child.once('exit', () => reject(new Error(`the gateway exited before it was ready:\n${log}`)))
  })
}

/** @param {string} program @param {string[]} words */
function run(program, words) {
  console.log(`[run] ${program} ${words.join(' ').replaceAll(dirname(folder), '…')}`)
  execFileSync(program, words, { cwd: folder, env, stdio: 'inherit' })
}

/** @param {string} title @param {unknown} due @param {unknown} seen */
function check(title, due, seen) {
  const isTrue = JSON.stringify(due) === JSON.stringify(seen)
  console.log(`${isTrue ? 'ok  ' : 'FAIL'}  ${title}`)
  if (!isTrue) throw new Error(`check of the package failed: ${title}: ${JSON.stringify(seen)}`)
}

/** @param {string} file */
function read(file) {
  return JSON.parse(readFileSync(file, 'utf8'))
}
