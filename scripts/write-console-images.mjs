// `npm run console-images -- [MINUTES]` sends traffic to the built program for MINUTES minutes, then
// writes docs/images/console-*.png.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'

const minutes = Number(process.argv[2] ?? 15)
const token = 'a-token-for-the-images-0123456789'
const password = 'correct horse battery staple'
const images = fileURLToPath(new URL('../docs/images/', import.meta.url))
/**
 * The names of the images, with their heights in pixels. A name with `-dark` means the dark design. A name with
 * `-phone` means a width of 360 pixels.
 */
const pages = {
  overview: 1020,
  'overview-dark': 1020,
  'user-phone': 760,
  routes: 800,
  users: 520,
  user: 1480,
  deliveries: 760,
  audit: 800,
  configuration: 760,
}

const folder = await mkdtemp(join(tmpdir(), 'peage-images-'))
const upstream = createServer((_, response) => {
  const isBroken = Math.random() < 0.004
  setTimeout(() => response.writeHead(isBroken ? 500 : 200).end('{}'), 2 + Math.random() * 6)
})
upstream.listen(19_000, '127.0.0.1')
await once(upstream, 'listening')
/** @param {string} name */
const certificate = name =>
  fileURLToPath(new URL(`../test/support/certificates/test-only-first.${name}.pem`, import.meta.url))
const receiver = createTlsServer(
  { cert: readFileSync(certificate('cert')), key: readFileSync(certificate('key')) },
  ({ url }, response) => response.writeHead(url === '/hooks' ? 204 : 500).end(),
)
receiver.listen(19_443, '127.0.0.1')
await once(receiver, 'listening')
const program = await startProgram()
try {
  const people = await makeUsers()
  program.kill('SIGHUP')
  await sendTraffic(people, Date.now() + minutes * 60_000)
  // Traffic continues while the images are taken, because the pages show current rates.
  const leaving = sendTraffic(people, Date.now() + 60_000)
  await photograph(people)
  await leaving
} finally {
  program.kill()
  await once(program, 'exit')
  upstream.closeAllConnections()
  upstream.close()
  receiver.closeAllConnections()
  receiver.close()
  await rm(folder, { recursive: true, force: true })
}

async function startProgram() {
  const file = join(folder, 'gateway.yaml')
  await writeFile(
    file,
    `server: { listen: 127.0.0.1:18080, log: { requests: false } }
admin:
  listen: 127.0.0.1:18081
  tokens: { operations: ${token}, helpdesk: { token: a-token-of-the-helpdesk-0123456789, may: support } }
auth: { key_secret: a-secret-for-the-images-0123456789abcdef }
webhooks: { allow_private_networks: true }
storage: { data_dir: ${JSON.stringify(join(folder, 'data'))} }
mail: { smtp: log, from: Courses <courses@example.com> }
upstreams:
  courses: { targets: [http://127.0.0.1:19000] }
  analyses: { targets: [http://127.0.0.1:19000, http://localhost:19000] }
routes:
  - { name: courses, path: /api/v1/courses/*, upstream: courses, free_daily: true }
  - { name: analyses, path: /api/v1/analyses/*, upstream: analyses, plans: [pro], rate_limit: 100/1m }
  - { name: news, path: /news, upstream: courses, auth: none }
  - { name: certificates, path: /api/v1/certificates/:id, methods: [GET, PUT], upstream: courses, verified: true }
`,
  )
  const peage = fileURLToPath(new URL('../dist/cli.js', import.meta.url))
  const started = spawn(process.execPath, [peage, 'start', '-c', file], {
    env: { ...process.env, NODE_ENV: 'development', NODE_EXTRA_CA_CERTS: certificate('cert') },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  for await (const line of createInterface({ input: started.stdout })) if (line.includes('"address"')) break
  started.stdout.resume()
  return started
}

/** @param {string} method @param {string} path @param {object} [body] */
async function operate(method, path, body) {
  return ask(`http://127.0.0.1:18081/admin/v1${path}`, method, token, body)
}

/** @param {string} url @param {string} method @param {string} [bearer] @param {object} [body] */
async function ask(url, method, bearer, body) {
  const response = await fetch(url, {
    method,
    headers: { 'content-type': 'application/json', ...(bearer && { authorization: `Bearer ${bearer}` }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return response.headers.get('content-type')?.includes('json') && text !== '' ? JSON.parse(text) : {}
}

/** @typedef {{ id: number, access: string }} Person */

async function makeUsers() {
  /** @type {Person[]} */
  const people = []
  for (const [name, plan] of [
    ['ada', 'pro'],
    ['grace', 'premium'],
    ['edsger', 'free'],
    ['barbara', 'pro'],
    ['alan', 'free'],
  ]) {
    const email = `${name}@example.com`
    const body = { email, password, plan, email_verified: name !== 'alan' }
    const { id } = await operate('POST', '/users', body)
    const { access_token } = await ask('http://127.0.0.1:18080/api/v1/auth/login', 'POST', undefined, {
      email,
      password,
    })
    people.push({ id, access: access_token })
  }
  const [ada, grace, edsger, barbara, alan] = /** @type {[Person, Person, Person, Person, Person]} */ (people)
  /** @param {string} path @param {object} body @param {Person} person */
  const client = (path, body, person) =>
    ask(`http://127.0.0.1:18080/api/v1${path}`, 'POST', person.access, body)
  await client('/auth/login', { email: 'edsger@example.com', password }, edsger)
  await client('/user/webhook', { url: 'https://localhost:19443/hooks' }, ada)
  await client('/user/webhook', { url: 'https://localhost:19443/broken' }, barbara)
  await operate('POST', `/users/${edsger.id}/send-reset`)
  await operate('POST', `/users/${edsger.id}/reset-usage`)
  await operate('PATCH', `/users/${grace.id}`, { plan: 'pro' })
  await operate('PATCH', `/users/${grace.id}`, { plan: 'premium' })
  await operate('PATCH', `/users/${alan.id}`, { is_active: 0 })
  await operate('POST', `/users/${alan.id}/send-reset`)
  await operate('PATCH', `/users/${alan.id}`, { is_active: 1 })
  await operate('POST', `/users/${alan.id}/send-reset`)
  const helpdesk = 'a-token-of-the-helpdesk-0123456789'
  await ask(`http://127.0.0.1:18081/admin/v1/users/${edsger.id}/export`, 'GET', helpdesk)
  await ask(`http://127.0.0.1:18081/admin/v1/users/${edsger.id}`, 'DELETE', helpdesk)
  for (const number of [41, 42, 43]) {
    await operate('POST', '/alerts', { type: 'analysis.ready', data: { number } })
  }
  return people
}

/** Sends dozens of requests per second, in waves. @param {{access: string}[]} people @param {number} untilMs */
async function sendTraffic(people, untilMs) {
  for (let round = 0; Date.now() < untilMs; round += 1) {
    const { access } = people[round % people.length] ?? {}
    const path = ['/api/v1/courses/1', '/news', '/api/v1/courses/2', '/api/v1/analyses/1'][round % 4]
    await ask(`http://127.0.0.1:18080${path}`, 'GET', access)
    await sleep(25 + 15 * Math.sin(Date.now() / 40_000) + 10 * Math.random())
  }
}

/** @param {{id: number}[]} people */
async function photograph([, , refused]) {
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] })
  const page = await browser.newPage({ locale: 'en', viewport: { width: 1280, height: 860 } })
  await page.goto('http://127.0.0.1:18081/console')
  await page.locator('input[type=password]').fill(token)
  await page.keyboard.press('Enter')
  await page.locator('nav').waitFor()
  for (const [file, height] of Object.entries(pages)) {
    const name = file.replace(/-(dark|phone)$/, '')
    await page.emulateMedia({ colorScheme: file.endsWith('-dark') ? 'dark' : 'light' })
    await page.setViewportSize({ width: file.endsWith('-phone') ? 360 : 1280, height })
    await page.goto(`http://127.0.0.1:18081/console#${name === 'user' ? `users/${refused?.id}` : name}`)
    await page.locator('main p.quiet[role=status]').first().waitFor({ state: 'detached' })
    // The page needs two readings of the metrics to calculate rates, so the image must wait for the rates.
    if (name === 'routes') await page.getByText('Requests per second').first().waitFor()
    if (name === 'user') {
      await page.getByLabel('Path').fill('/api/v1/courses/1')
      await page.getByRole('button', { name: 'Explain' }).click()
      await page.locator('.outcome').waitFor()
    }
    // Charts are drawn one animation frame after the data arrives.
    await page.evaluate('new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))')
    await page.screenshot({ path: `${images}console-${file}.png` })
  }
  await browser.close()
}
