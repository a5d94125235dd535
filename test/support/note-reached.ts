// Before each test file: what the run reaches is noted, where the run is asked to.
import { inject } from 'vitest'
import { noteReached } from './reached.ts'

if (inject('reachedFile') !== '') noteReached(inject('reachedFile'))
