// Checks the Dockerfile without a build. `npm run image:replay` runs the steps of the Dockerfile.
import { describe, expect, it } from 'vitest'
import { readDockerfile } from '../../deploy/image/dockerfile.ts'
import { read } from './read.ts'

const stages = readDockerfile(read('Dockerfile'))
const image = stages.at(-1)?.instructions ?? []
const words = (name: string) => image.filter(one => one.name === name).map(one => one.words)

describe('the Dockerfile', () => {
  it('starts every stage from the same image, with an exact version', () => {
    expect(new Set(stages.map(({ from }) => from)).size).toBe(1)
    expect(stages[0]?.from).toMatch(/^node:\d+\.\d+\.\d+-bookworm-slim$/)
  })

  it('installs only production packages, in the versions of the lock file', () => {
    const packages = stages.find(({ name }) => name === 'packages')?.instructions ?? []
    expect(packages.filter(({ name }) => name === 'RUN').map(one => one.words)).toEqual([
      'npm ci --omit=dev --ignore-scripts',
    ])
    const shipped = image.filter(({ name, flags }) => name === 'COPY' && flags.from !== undefined)
    expect(shipped.map(one => `${one.flags.from} ${one.words}`)).toEqual([
      'packages /app/node_modules ./node_modules',
      'build /app/dist ./dist',
    ])
    expect(words('ENV').join(' ')).toContain('NODE_ENV=production')
    expect(words('ENV').join(' ')).toContain('MALLOC_MMAP_THRESHOLD_=1048576')
  })

  it('copies every file that the steps of `npm run build` read', () => {
    const built = stages.find(({ name }) => name === 'build')?.instructions ?? []
    const copied = built
      .filter(({ name }) => name === 'COPY')
      .flatMap(one => one.words.split(' ').slice(0, -1))
    const { build } = JSON.parse(read('package.json')).scripts as { build: string }
    const steps = [...build.matchAll(/\bnode (\S+)/g)].map(([, script = '']) => script)
    const folders = steps.flatMap(script =>
      [...read(script).matchAll(/new URL\('\.\.\/([\w-]+)\/?'/g)].map(([, folder = '']) => folder),
    )
    expect(folders).toContain('console')
    const made = ['dist']
    expect([...steps, ...folders].filter(name => !copied.includes(name) && !made.includes(name))).toEqual([])
  })

  it('runs as a numeric user other than root, with one volume to write to', () => {
    expect(words('USER')).toEqual(['1000:1000'])
    expect(words('VOLUME')).toEqual(['/data'])
  })

  it('starts node directly, so that SIGTERM reaches node', () => {
    expect(words('STOPSIGNAL')).toEqual(['SIGTERM'])
    expect(words('ENTRYPOINT')).toEqual(['["node", "/app/dist/cli.js"]'])
  })

  it('checks the health of the gateway with node, which the image contains', () => {
    expect(words('HEALTHCHECK').join()).toMatch(/^CMD \["node", "-e", /)
  })

  it('copies exactly the paths that .dockerignore does not exclude', () => {
    const [all, ...through] = read('.dockerignore')
      .split('\n')
      .filter(line => !/^(#|$)/.test(line))
    expect(all).toBe('*')
    const copied = stages
      .flatMap(({ instructions }) => instructions)
      .filter(({ name, flags }) => name === 'COPY' && flags.from === undefined)
      .flatMap(one => one.words.split(' ').slice(0, -1))
    expect([...new Set(copied)].sort()).toEqual(through.map(line => line.slice(1)).sort())
  })
})
