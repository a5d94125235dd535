// Writes what docs and README show of docs/dev/benchmark.json: `npm run bench:docs`.
import { publish } from './publish.ts'
import { readRecording } from './recording.ts'

publish(readRecording())
