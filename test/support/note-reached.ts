// Runs before each test file. If the run has a file for reached refusals, starts to record them.
import { inject } from 'vitest'
import { noteReached } from './reached.ts'

if (inject('reachedFile') !== '') noteReached(inject('reachedFile'))
