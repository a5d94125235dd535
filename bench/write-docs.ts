// `npm run bench:docs` writes the tables and charts from docs/dev/benchmark.json into docs and README.
import { publish } from './publish.ts'
import { readRecording } from './recording.ts'

publish(readRecording())
