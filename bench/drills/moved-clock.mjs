// The clock of a process of its own, which a drill sets: libfaketime (Debian's `faketime`), told by a file. Timers go on as they do.
import { existsSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const day = 86_400_000

/** @returns {string} the library. @throws Error where it is not installed */
function findLibrary() {
  const { FAKETIME_LIBRARY: named } = process.env
  const places = readdirSync('/usr/lib').map(name => `/usr/lib/${name}/faketime/libfaketimeMT.so.1`)
  const found = [...(named === undefined ? [] : [named]), ...places].find(existsSync)
  if (found === undefined) throw new Error('this drill needs libfaketime: `apt-get install faketime`')
  return found
}

/**
 * @param {string} folder for its file
 * @param {string} name
 */
export function createMovedClock(folder, name) {
  const file = join(folder, `clock-${name}`)
  const move = byMs => {
    // Another file in its place: one that is half written would be no time at all.
    writeFileSync(`${file}.new`, `${byMs < 0 ? '-' : '+'}${(Math.abs(byMs) / 1_000).toFixed(3)}\n`)
    renameSync(`${file}.new`, file)
  }
  move(0)
  return {
    /** What the process is started with: calendar time alone is moved, and the file is read at each look at the clock. */
    env: {
      LD_PRELOAD: findLibrary(),
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
    /**
     * It goes on from there.
     * @param {number} days after today, UTC @param {number} ms of that day
     */
    set(days, ms) {
      const today = Math.floor(Date.now() / day) * day
      move(today + days * day + ms - Date.now())
    },
  }
}
