// What the npm package brings, to the version and the digest: package-lock.json without what development needs.
import { minVersion, satisfies } from 'semver'

/**
 * @typedef {object} Locked
 * @property {string} [version]
 * @property {boolean} [dev]
 * @property {boolean} [devOptional]
 * @property {string} [resolved]
 * @property {string} [integrity]
 * @property {{ node?: string }} [engines]
 * @property {Record<string, string>} [dependencies]
 * @property {Record<string, string>} [devDependencies]
 */

/** @typedef {{ packages: Record<string, Locked> }} Lock package-lock.json, as far as it is read here */

/**
 * The content of npm-shrinkwrap.json. Without it an installed package's dependencies float, since npm heeds neither
 * `package-lock.json` nor `overrides` of what it installs.
 * @param {Lock} lock
 * @returns {Lock}
 */
export function pinned(lock) {
  const { '': own, ...packages } = lock.packages
  const { devDependencies: _, ...root } = own ?? {}
  const needed = Object.entries(packages).filter(([, { dev, devOptional }]) => !dev && !devOptional)
  return { ...lock, packages: { '': root, ...Object.fromEntries(needed) } }
}

/**
 * The packages that do not admit the lowest Node of each line that the package itself admits.
 * @param {Lock} lock
 * @returns {string[]} each as `name@version needs Node RANGE and does not support NODE`
 */
export function tooNew({ packages: { '': own, ...packages } }) {
  const lowest = (own?.engines?.node ?? '').split('||').map(line => String(minVersion(line)))
  return Object.entries(packages).flatMap(([path, { version, engines }]) =>
    lowest
      .filter(node => !satisfies(node, engines?.node ?? '*'))
      .map(
        node =>
          `${path.replace(/^.*node_modules\//, '')}@${version} needs Node ${engines?.node} and does not support ${node}`,
      ),
  )
}
