// Calculates the pinned dependencies of the npm package: package-lock.json without development dependencies.
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

/** @typedef {{ packages: Record<string, Locked> }} Lock the part of package-lock.json that is used here */

/**
 * Returns the content of npm-shrinkwrap.json, which pins the dependencies of the package. The package needs this file,
 * because npm ignores `package-lock.json` and `overrides` of a package that it installs.
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
 * Returns the dependencies that do not support every Node version that Péage supports. It checks only
 * the lowest version of each release line of Node.
 * @param {Lock} lock
 * @returns {string[]} lines like `name@version needs Node RANGE and does not support NODE`
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
