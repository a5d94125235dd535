// Runs the registered clean-up steps after a run, last step first, even if the run fails or is interrupted.

const steps: (() => Promise<void>)[] = []
/** The exit status, if a signal has interrupted the run. */
let interrupted: number | undefined

/**
 * Registers a step that cleans up at the end of the run.
 * @returns a function that runs the step immediately; the step then does not run again
 * @throws Error if the run has been interrupted, so that the caller starts nothing else. The step is still registered.
 */
export function atEnd(step: () => unknown): () => Promise<void> {
  let undone: Promise<void> | undefined
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
 * Runs `main`, cleans up, and ends the process, even after an error.
 * @param main resolves to the exit status
 */
export async function runAndCleanUp(main: () => Promise<number>): Promise<never> {
  for (const [signal, number] of signals) {
    process.on(signal, () => {
      if (interrupted !== undefined) return
      interrupted = 128 + number
      process.stderr.write(`${signal}: cleaning up\n`)
      // The clean-up usually makes `main` fail, so the process exits at the end of `runAndCleanUp`. If `main` does not
      // fail, the process exits 5 s after the clean-up.
      cleanUp().then(() => setTimeout(() => process.exit(interrupted), 5_000))
    })
  }
  let status = 0
  try {
    status = await main()
  } catch (error) {
    if (interrupted === undefined) {
      process.stderr.write(`${error instanceof Error ? error.stack : error}\n`)
    }
    status = 1
  }
  await cleanUp()
  process.exit(interrupted ?? status)
}

const signals: [NodeJS.Signals, number][] = [
  ['SIGINT', 2],
  ['SIGTERM', 15],
  ['SIGHUP', 1],
]

/** Runs all steps, even if one fails. */
async function cleanUp(): Promise<void> {
  for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
    taking = step().catch(error => void process.stderr.write(`clean-up failed: ${error}\n`))
    await taking
  }
  // Two calls of this function may run at once. Each call must wait until the last step has ended.
  await taking
}

let taking = Promise.resolve()

/**
 * Throws if the run has been interrupted. After an interrupt, failures are expected, so the caller must not report
 * them.
 */
export function throwIfInterrupted(): void {
  if (interrupted !== undefined) throw new Error('interrupted')
}
