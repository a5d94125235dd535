// Opens the embedded database of a data folder with little CPU time and memory.
import { withoutOptimizingWasm } from '../http/node-internals.ts'
import { type OpenFolder, openDataFolder } from '../storage/open.ts'

export const openFolder: OpenFolder = dir => withoutOptimizingWasm(() => openDataFolder(dir))
