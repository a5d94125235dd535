// Creates the root file system of a stage and runs programs in it, by chroot in a mount namespace.
import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The image that the steps of a stage produce. */
export interface Image {
  readonly root: string
  readonly node: string
  readonly env: Record<string, string>
  readonly volumes: string[]
  folder: string
  user: string
  entrypoint: readonly string[]
  command: readonly string[]
  health: readonly string[]
  stopSignal?: NodeJS.Signals
}

interface Entering {
  /** Whether the program can write to the root file system. */
  readonly writable?: boolean
  readonly env?: Readonly<Record<string, string>>
}

/** The user ID of the user `node` in the base image. */
const nodeUser = 1_000

/** The folder in an image that contains the program `node`. In PATH, it comes before the folders of this machine. */
const nodeFolder = '/opt/node'

/**
 * Creates a minimal base image in the folder `root`: the users, the files for DNS, and empty folders. `entering` mounts
 * folders of this machine over the empty folders.
 */
export function makeRoot(root: string): string {
  for (const name of ['usr', 'bin', 'sbin', 'lib', 'lib64', 'etc/ssl', 'proc', 'dev', 'tmp', nodeFolder]) {
    mkdirSync(join(root, name), { recursive: true })
  }
  chmodSync(join(root, 'tmp'), 0o1777)
  writeFileSync(
    join(root, 'etc/passwd'),
    `root:x:0:0::/root:/bin/sh\nnode:x:${nodeUser}:${nodeUser}::/tmp:/bin/sh\n`,
  )
  writeFileSync(join(root, 'etc/group'), `root:x:0:\nnode:x:${nodeUser}:\n`)
  for (const name of ['resolv.conf', 'hosts', 'nsswitch.conf']) {
    if (existsSync(`/etc/${name}`)) cpSync(`/etc/${name}`, join(root, 'etc', name), { dereference: true })
  }
  return root
}

/**
 * Returns the arguments of `unshare` that run a program in an image. The program runs as the image's user. A user other
 * than root has no capabilities. The program gets the environment variables of the image, of `env`, and for npm. It can
 * always write to volumes, but to the root file system only during a build.
 */
export function entering(
  image: Image,
  words: readonly string[],
  { writable = false, env = {} }: Entering = {},
): string[] {
  const bind = ['usr', 'bin', 'sbin', 'lib', 'lib64', 'etc/ssl']
    .filter(name => existsSync(`/${name}`))
    .map(
      name =>
        `mount --rbind /${name} ${image.root}/${name} && mount -o remount,bind,ro ${image.root}/${name}`,
    )
  const mounts = [
    'mount --make-rprivate /',
    `mount --bind ${image.root} ${image.root}`,
    ...bind,
    `mount --bind ${image.node} ${image.root}${nodeFolder} && mount -o remount,bind,ro ${image.root}${nodeFolder}`,
    `mount -t proc proc ${image.root}/proc`,
    `mount --rbind /dev ${image.root}/dev`,
    ...image.volumes.map(path => `mount --bind ${image.root}${path} ${image.root}${path}`),
    ...(writable ? [] : [`mount -o remount,bind,ro ${image.root}`]),
  ]
  const [uid, gid = uid] = image.user.split(':')
  const drop =
    uid === '0'
      ? ''
      : `setpriv --reuid ${uid} --regid ${gid} --clear-groups --bounding-set=-all --inh-caps=-all --ambient-caps=-all --no-new-privs`
  const inside = Object.entries({
    PATH: `${nodeFolder}:/usr/local/bin:/usr/bin:/bin`,
    ...environment(),
    ...image.env,
    ...env,
  })
  const script = `${mounts.join(' && ')} && exec chroot ${image.root} sh -c 'cd "$0" && exec "$@"' ${image.folder} ${drop} env -i "$@"`
  return ['-m', 'sh', '-c', script, 'sh', ...inside.map(([key, value]) => `${key}=${value}`), ...words]
}

/**
 * Returns the environment variables for npm, including the registry, proxy and certificate settings of this machine.
 */
function environment(): Record<string, string | undefined> {
  const passed = Object.entries(process.env).filter(([key]) =>
    /^(npm_config_(registry|cafile)|https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS)$/i.test(key),
  )
  return { HOME: '/tmp', npm_config_update_notifier: 'false', ...Object.fromEntries(passed) }
}

export function enter(image: Image, words: readonly string[], options: Entering) {
  return spawnSync('unshare', entering(image, words, options), { stdio: ['ignore', 'inherit', 'inherit'] })
}
