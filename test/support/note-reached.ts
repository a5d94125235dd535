// Runs before each test file. Records reached refusals if the run has a file for them.
import { inject } from 'vitest'
import { noteReached } from './reached.ts'

if (inject('reachedFile') !== '') noteReached(inject('reachedFile'))
