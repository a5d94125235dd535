// Runs before each test file. Starts to record the refusals that tests reach, if `reachedFile` is set.
import { inject } from 'vitest'
import { noteReached } from './reached.ts'

if (inject('reachedFile') !== '') noteReached(inject('reachedFile'))
