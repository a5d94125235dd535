// What a run has made is undone in reverse order, also when it fails or is interrupted.

/** @type {(() => Promise<void>)[]} */
const steps = []
/** The exit status of an interrupted run. @type {number | undefined} */
let interrupted

/**
 * @param {() => unknown} step
 * @returns {() => Promise<void>} undoes it now; once, however often it is called
 * @throws where the run is interrupted: nothing more may begin; the step will be taken all the same
 */
export function atEnd(step) {
  /** @type {Promise<void> | undefined} */
  let undone
  const once = () => {
    undone ??= Promise.resolve()
      .then(step)
      .then(() => {
        const at = steps.indexOf(once)
        if (at !== -1) steps.splice(at, 1)
      })
    return undone
  }
  steps.push(once)
  if (interrupted !== undefined) throw new Error('interrupted')
  return once
}

/**
 * Runs something to its end, undoes what it made, and ends the process, whatever happens.
 * @param {() => Promise<number | void>} main the exit status, 0 where it names none
 */
export async function runAndCleanUp(main) {
  for (const [signal, number] of signals) {
    process.on(signal, () => {
      if (interrupted !== undefined) return
      interrupted = 128 + number
      process.stderr.write(`${signal}: cleaning up\n`)
      // What `main` waits for breaks under it, and it ends; where it does not, there is no waiting for it.
      cleanUp().then(() => setTimeout(() => process.exit(interrupted), 5_000))
    })
  }
  let status = 0
  try {
    status = (await main()) ?? 0
  } catch (error) {
    if (interrupted === undefined) {
      process.stderr.write(`${error instanceof Error ? error.stack : error}\n`)
    }
    status = 1
  }
  await cleanUp()
  process.exit(interrupted ?? status)
}

/** @type {[NodeJS.Signals, number][]} */
const signals = [
  ['SIGINT', 2],
  ['SIGTERM', 15],
  ['SIGHUP', 1],
]

/** One step that fails does not keep the others from being taken. */
async function cleanUp() {
  for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
    taking = step().catch(error => process.stderr.write(`not cleaned up: ${error}\n`))
    await taking
  }
  // Two may be at it: the last one's step is waited for by both.
  await taking
}

let taking = Promise.resolve()

/** Throws where the run is interrupted: what fails then is nobody's fault. */
export function throwIfInterrupted() {
  if (interrupted !== undefined) throw new Error('interrupted')
}
