// Moves the clock of a process. The process loads libfaketime (Debian package `faketime`), which reads the offset of
// the clock from a file. Timers are not affected.
import { existsSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const day = 86_400_000

/** @returns the path of the library @throws Error if libfaketime is not installed */
function findLibrary(): string {
  const { FAKETIME_LIBRARY: named } = process.env
  const places = readdirSync('/usr/lib').map(name => `/usr/lib/${name}/faketime/libfaketimeMT.so.1`)
  const found = [...(named === undefined ? [] : [named]), ...places].find(existsSync)
  if (found === undefined) throw new Error('libfaketime is missing. Run `apt-get install faketime`.')
  return found
}

export interface MovedClock {
  /** The environment variables for the process. */
  readonly env: Readonly<Record<string, string>>
  /**
   * Sets the clock. From this time, the clock continues to run.
   * @param days days after today (UTC)
   * @param ms milliseconds since the day's start
   */
  set(days: number, ms: number): void
}

/** @param folder the folder for the file that libfaketime reads */
export function createMovedClock(folder: string, name: string): MovedClock {
  const file = join(folder, `clock-${name}`)
  const move = (byMs: number) => {
    // The process must never read a partly written file.
    writeFileSync(`${file}.new`, `${byMs < 0 ? '-' : '+'}${(Math.abs(byMs) / 1_000).toFixed(3)}\n`)
    renameSync(`${file}.new`, file)
  }
  move(0)
  return {
    // With these variables, libfaketime changes only the calendar time. It reads the file at each call, because its
    // cache is off.
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
