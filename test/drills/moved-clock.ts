// The clock of one process, which a drill sets through a file: libfaketime (Debian's `faketime`). Timers are not moved.
import { existsSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const day = 86_400_000

/** @returns the library. @throws Error where it is not installed */
function findLibrary(): string {
  const { FAKETIME_LIBRARY: named } = process.env
  const places = readdirSync('/usr/lib').map(name => `/usr/lib/${name}/faketime/libfaketimeMT.so.1`)
  const found = [...(named === undefined ? [] : [named]), ...places].find(existsSync)
  if (found === undefined) throw new Error('this drill needs libfaketime: `apt-get install faketime`')
  return found
}

export interface MovedClock {
  /** The environment that the process is started with. */
  readonly env: Readonly<Record<string, string>>
  /** Sets the clock, which goes on from there. @param days after today (UTC) @param ms of that day */
  set(days: number, ms: number): void
}

/** @param folder for the file */
export function createMovedClock(folder: string, name: string): MovedClock {
  const file = join(folder, `clock-${name}`)
  const move = (byMs: number) => {
    // The process must never read a file that is half written.
    writeFileSync(`${file}.new`, `${byMs < 0 ? '-' : '+'}${(Math.abs(byMs) / 1_000).toFixed(3)}\n`)
    renameSync(`${file}.new`, file)
  }
  move(0)
  return {
    // Only calendar time is moved, and libfaketime reads the file each time.
    env: {
      LD_PRELOAD: findLibrary(),
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
    set(days, ms) {
      const today = Math.floor(Date.now() / day) * day
      move(today + days * day + ms - Date.now())
    },
  }
}
