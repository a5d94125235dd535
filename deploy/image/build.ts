// Replays the steps of one stage of a Dockerfile in an empty root file system.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, lchownSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { execForm, type Stage } from './dockerfile.ts'
import { enter, type Image, makeRoot } from './root.ts'

/**
 * The ID of the user who runs the build stages and owns their files. The replay must not build as root. Only the last
 * stage, which builds nothing, runs as root.
 */
const builder = 65_533

/**
 * Creates the same build context as `docker build .`.
 * @throws Error unless the first pattern in .dockerignore is `*` and all other patterns are exceptions without
 *   wildcards
 */
export function makeContext(repository: string, work: string): string {
  const [all, ...exceptions] = readFileSync(join(repository, '.dockerignore'), 'utf8')
    .split('\n')
    .filter(line => !/^(#|$)/.test(line))
  if (all !== '*' || exceptions.some(line => !/^![^*]+$/.test(line)))
    throw new Error('.dockerignore must contain the pattern *, followed only by exceptions without wildcards')
  const context = join(work, 'context')
  mkdirSync(context)
  for (const name of exceptions.map(line => line.slice(1))) {
    cpSync(join(repository, name), join(context, name), { recursive: true })
  }
  return context
}

interface Place {
  /** The folder of the build context. */
  readonly context: string
  /** The images of the previous stages, by the name of the stage. */
  readonly stages: ReadonlyMap<string, Image>
  readonly work: string
  /** The folder that contains the program `node`. */
  readonly node: string
}

export function build(stage: Stage, { context, stages, work, node }: Place): Image {
  const isLast = /^\d+$/.test(stage.name)
  const root = makeRoot(join(work, `stage-${stage.name}`))
  const user = `${isLast ? 0 : builder}`
  const none = { volumes: [], entrypoint: [], command: [], health: [] }
  const image: Image = { root, node, env: {}, folder: '/', user, ...none }
  for (const { name, words, flags, line } of stage.instructions) {
    console.log(`[${stage.name}] ${name} ${words}`)
    if (name === 'ENV') {
      for (const [, key = '', value = ''] of words.matchAll(/(\w+)=(\S+)/g)) image.env[key] = value
    }
    if (name === 'WORKDIR') {
      image.folder = words
      mkdirSync(join(root, words), { recursive: true })
      lchownSync(join(root, words), Number(image.user), Number(image.user))
    }
    if (name === 'COPY') {
      const [target = '', ...sources] = words.split(' ').reverse()
      const source = flags.from === undefined ? context : stages.get(flags.from)?.root
      if (source === undefined) throw new Error(`Dockerfile:${line}: no stage ${flags.from}`)
      for (const path of sources)
        copy(join(source, path), join(root, resolve(image.folder, target)), sources, path)
      // Docker copies files as root. In the replay, the user `builder` runs the build stages and writes to the folder.
      // So this user must own the copied files.
      if (!isLast) giveTo(join(root, image.folder), builder)
    }
    if (name === 'RUN') {
      const ended = enter(image, ['sh', '-c', words], { writable: true })
      if (ended.status !== 0) throw new Error(`Dockerfile:${line}: RUN ${words}: exit status ${ended.status}`)
    }
    if (name === 'VOLUME') image.volumes.push(words)
    if (name === 'USER') image.user = words
    if (name === 'STOPSIGNAL') image.stopSignal = words as NodeJS.Signals
    if (name === 'HEALTHCHECK') image.health = execForm(words.replace(/^CMD /, ''))
    if (name === 'ENTRYPOINT') image.entrypoint = execForm(words)
    if (name === 'CMD') image.command = execForm(words)
  }
  return image
}

/** Copies a file or folder like the instruction COPY. If the source is a folder, only its content is copied. */
function copy(source: string, target: string, sources: readonly string[], path: string): void {
  const isFolder = existsSync(join(source, '.')) && readdirOf(source) !== undefined
  const into = isFolder
    ? target
    : sources.length > 1 || path.endsWith('/')
      ? join(target, basename(path))
      : target
  cpSync(source, !isFolder && readdirOf(into) !== undefined ? join(into, basename(path)) : into, {
    recursive: true,
    verbatimSymlinks: true,
  })
}

function readdirOf(path: string): string[] | undefined {
  try {
    return readdirSync(path)
  } catch {
    return undefined
  }
}

function giveTo(folder: string, uid: number): void {
  const { status } = spawnSync('chown', ['-Rh', `${uid}:${uid}`, folder])
  if (status !== 0) throw new Error(`chown ${folder} failed`)
}
