// Tests that the committed JSON Schema is current, and that the committed sample is valid.
import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { jsonSchema } from '../../src/config/json-schema.ts'
import { configOf, load } from './reading.ts'

const committed = (name: string) => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8')
const sample = committed('gateway.yaml')

describe('gateway.schema.json', () => {
  const validate = new Ajv2020().compile(jsonSchema())

  it('is the same as the output of `peage schema`', () => {
    expect(committed('gateway.schema.json')).toBe(`${JSON.stringify(jsonSchema(), null, 2)}\n`)
  })

  it('uses only standard keywords, and accepts variables like ${…}', () => {
    expect(validate(parse(sample))).toBe(true)
    expect(
      validate({
        storage: { pool: '${POOL}' },
        server: { log: { requests: '${R}' }, drain_timeout: '${D}' },
      }),
    ).toBe(true)
  })

  it('accepts sections and lists without a value, as `peage check` does', () => {
    const text = `server:\n  log:\nlimits:\nroutes:\nauth:\n  keys:\nupstreams:\n  a: { targets: [http://a], resolve: }\n`
    expect(configOf(text).upstreams.a?.resolve).toEqual({ every: 10_000, most: 32, family: 'auto' })
    expect(validate(parse(text))).toBe(true)
  })

  it('accepts an empty value for each key that is allowed to be empty', () => {
    expect(
      validate({
        storage: { postgres: null, redis: null },
        auth: { key_secret: null, key_secret_old: null },
        subscription: { upgrade_url: null },
        admin: { token: null },
      }),
    ).toBe(true)
  })

  it.each([
    { storage: { data_dir: null } },
    { admin: null },
    { servr: {} },
    { storage: { pool: 'x' } },
    { auth: { access_token_ttl: 'x' } },
    { routes: [{ path: '/x' }] },
  ])('refuses %j', document => expect(validate(document)).toBe(false))

  it('contains a default for each optional key whose default is fixed', () => {
    const defaults: Record<string, unknown> = {}
    const look = (part: unknown): void => {
      if (typeof part !== 'object' || part === null) return
      for (const [key, inner] of Object.entries(part)) {
        const { description, default: byDefault } = (inner ?? {}) as {
          description?: string
          default?: unknown
        }
        if (['weight', 'verified', 'used_today'].includes(key) && !description?.startsWith('Allow'))
          defaults[key] = byDefault
        expect(String(description), key).not.toMatch(/Omitted: (\d+|true|false)\b/)
        look(inner)
      }
    }
    look({ gateway: jsonSchema() })
    expect(defaults).toEqual({ weight: 100, verified: true, used_today: 0 })
    const { targets } = configOf('upstreams: { a: { targets: [{ url: "http://a" }] } }').upstreams.a ?? {}
    expect(targets).toEqual([{ url: 'http://a', weight: 100 }])
  })

  it('has a description for every key', () => {
    const silent: string[] = []
    const look = (part: unknown, path: string): void => {
      if (typeof part !== 'object' || part === null) return
      for (const [key, inner] of Object.entries(part)) {
        if (key === 'properties') {
          for (const [name, property] of Object.entries(inner as Record<string, { description?: string }>)) {
            if (!property.description) silent.push(`${path}.${name}`)
          }
        }
        look(inner, `${path}.${key}`)
      }
    }
    look(jsonSchema(), '')
    expect(silent).toEqual([])
  })
})

describe('the sample gateway.yaml', () => {
  it('is valid without environment variables, and uses the embedded database and one upstream', () => {
    const config = configOf(sample)
    expect(config.server.listen).toEqual({ host: '0.0.0.0', port: 8080 })
    expect(config.admin).toEqual({
      listen: { host: '127.0.0.1', port: 8081 },
      token: '',
      tokens: {},
      console: true,
    })
    expect(config.storage).toMatchObject({ postgres: '', redis: '', data_dir: './data' })
    expect(config.upstreams.courses?.targets).toEqual([{ url: 'http://127.0.0.1:9000', weight: 100 }])
    expect(
      config.routes.map(({ name, auth, plans, free_daily }) => ({ name, auth, plans, free_daily })),
    ).toEqual([
      { name: 'health', auth: 'none', plans: undefined, free_daily: false },
      { name: 'courses', auth: 'required', plans: undefined, free_daily: true },
      { name: 'reports', auth: 'required', plans: ['pro'], free_daily: false },
      { name: 'catalog', auth: 'optional', plans: undefined, free_daily: false },
    ])
  })

  it('contains comments with a section `plans` and a route with a quota, which are valid if they are uncommented', () => {
    const lines = sample.split('\n')
    const text = lines.map((line, index) => (index < 3 ? line : line.replace(/^( *)# /, '$1'))).join('\n')
    const loaded = load(text)
    if (!('config' in loaded)) throw new Error(JSON.stringify(loaded.problems))
    expect(loaded.warnings.problems).toEqual([])
    expect(loaded.config.plans.map(({ name }) => name)).toEqual(['free', 'premium', 'pro'])
    expect(loaded.config.routes.at(-1)?.quota).toEqual({ name: 'exports', cost: 1 })
    expect(configOf(sample).plans.map(({ quotas }) => quotas)).toEqual([{}, {}, {}])
  })

  it('takes its addresses and secrets from environment variables', () => {
    const config = configOf(sample, {
      HOST: '127.0.0.1',
      PORT: '0',
      PEAGE_ADMIN_TOKEN: 'a-token-long-enough',
      DATABASE_URL: 'postgres://db/x',
      REDIS_URL: 'redis://r',
      PEAGE_DATA_DIR: '/var/lib/peage',
      PEAGE_KEY_SECRET: 'a-secret-long-enough',
      UPSTREAM_URL: 'https://courses.internal',
      UPGRADE_URL: 'https://pay.example.com/{plan}?user={user_id}',
    })
    expect(config).toMatchObject({
      server: { listen: { host: '127.0.0.1', port: 0 } },
      admin: { token: 'a-token-long-enough' },
      storage: { postgres: 'postgres://db/x', redis: 'redis://r', data_dir: '/var/lib/peage' },
      auth: { key_secret: 'a-secret-long-enough' },
      subscription: { upgrade_url: 'https://pay.example.com/{plan}?user={user_id}' },
      upstreams: { courses: { targets: [{ url: 'https://courses.internal', weight: 100 }] } },
    })
  })
})
