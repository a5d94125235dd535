// Measures code coverage with V8. It needs no package and no instrumented code.
import { Session } from 'node:inspector'

export interface Coverage {
  /** Returns the code that ran since the last call. */
  take(): Ran
}

export interface Ran {
  /** Returns true if code ran that no earlier call of `learn` has recorded. */
  isNew(): boolean
  learn(): void
}

interface Range {
  startOffset: number
  endOffset: number
  count: number
}

interface Script {
  url: string
  functions: { ranges: Range[] }[]
}

/**
 * Starts to measure the block coverage of all scripts that this process has loaded or will load.
 * @param covers only scripts whose URL matches this pattern are evaluated
 */
export function openCoverage(covers: RegExp): Coverage & { close(): void } {
  const session = new Session()
  session.connect()
  session.post('Profiler.enable')
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  /**
   * The code that `learn` has recorded, by script URL. Each array has one element for each character of the script. An
   * element is 1 if the code at this character has run.
   */
  const known = new Map<string, Uint8Array>()

  return {
    take() {
      let scripts: Script[] = []
      session.post('Profiler.takePreciseCoverage', (error, taken) => {
        if (error !== null) throw error
        scripts = (taken as { result: Script[] }).result.filter(({ url }) => covers.test(url))
      })
      const painted = scripts.map(script => [script.url, paint(script)] as const)
      return {
        isNew: () =>
          painted.some(([url, now]) => {
            const before = known.get(url)
            return now.some((ran, at) => ran === 1 && before?.[at] !== 1)
          }),
        learn() {
          for (const [url, now] of painted) {
            const before = known.get(url)
            const all = before !== undefined && before.length >= now.length ? before : new Uint8Array(now)
            for (const [at, ran] of (all === before ? now : (before ?? [])).entries())
              if (ran === 1) all[at] = 1
            known.set(url, all)
          }
        },
      }
    },
    close() {
      session.post('Profiler.stopPreciseCoverage')
      session.disconnect()
    },
  }
}

/**
 * Returns one element for each character of the script: 1 if its code ran, otherwise 0. V8 lists inner blocks after
 * outer blocks, so later ranges overwrite earlier ones.
 */
function paint({ functions }: Script): Uint8Array {
  const ranges = functions.flatMap(one => one.ranges)
  const ran = new Uint8Array(ranges.reduce((length, { endOffset }) => Math.max(length, endOffset), 0))
  for (const { startOffset, endOffset, count } of ranges) ran.fill(count > 0 ? 1 : 0, startOffset, endOffset)
  return ran
}
