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
 * Returns the content of npm-shrinkwrap.json, which pins the dependencies of the package. The package needs this file.
 * When npm installs a package, it ignores the `package-lock.json` and the `overrides` of the package.
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
 * Finds the dependencies that do not support a Node version that Péage supports. For each range in `engines.node` of
 * Péage, only the lowest version is checked.
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
