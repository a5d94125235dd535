// What a run has made is undone in reverse order, also when it fails or is interrupted.

const steps: (() => Promise<void>)[] = []
/** The exit status of an interrupted run. */
let interrupted: number | undefined

/**
 * @returns undoes it now; once, however often it is called
 * @throws where the run is interrupted: nothing more may begin; the step will be taken all the same
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
 * Runs something to its end, undoes what it made, and ends the process, whatever happens.
 * @param main resolves to the exit status
 */
export async function runAndCleanUp(main: () => Promise<number>): Promise<never> {
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

/** One step that fails does not keep the others from being taken. */
async function cleanUp(): Promise<void> {
  for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
    taking = step().catch(error => void process.stderr.write(`not cleaned up: ${error}\n`))
    await taking
  }
  // Two may be at it: the last one's step is waited for by both.
  await taking
}

let taking = Promise.resolve()

/** Throws where the run is interrupted: what fails then is nobody's fault. */
export function throwIfInterrupted(): void {
  if (interrupted !== undefined) throw new Error('interrupted')
}
