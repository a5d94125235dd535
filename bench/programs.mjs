// Where other people's programs are on this machine.
import { accessSync, constants, readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/**
 * @param {string} name
 * @returns {string | undefined} its path
 */
export function findProgram(name) {
  // Servers are not on everybody's search path.
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']
  return folders
    .filter(Boolean)
    .map(folder => join(folder, name))
    .find(isProgram)
}

/** @returns {string | undefined} the folder of `postgres` and `initdb` */
export function findPostgres() {
  const packaged = '/usr/lib/postgresql'
  const versions = list(packaged).sort((a, b) => Number(b) - Number(a))
  const folders = [
    ...(process.env.PATH ?? '').split(delimiter).filter(Boolean),
    ...versions.map(version => join(packaged, version, 'bin')),
  ]
  return folders.find(folder => isProgram(join(folder, 'postgres')) && isProgram(join(folder, 'initdb')))
}

/** @param {string} folder */
function list(folder) {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** @param {string} file */
function isProgram(file) {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}
