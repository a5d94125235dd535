// Tests that V8 does not optimize the WebAssembly of PGlite, because this would take up to 600 MB of memory. Also tests
// that `tickRecord` is a tick of Node.
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { expect, it } from 'vitest'
import { keepShapeOfTicks, tickRecord, withoutOptimizingWasm } from '../../src/http/node-internals.ts'

declare global {
  namespace WebAssembly {
    class Instance {
      readonly exports: { readonly f: Loop }
      constructor(module: Module)
    }
  }
}

type Loop = (times: number) => number

/** A WebAssembly module that exports `f(times)`, a loop with some arithmetic. */
const LOOP = Buffer.from(
  'AGFzbQEAAAABBgFgAX8BfwMCAQAHBQEBZgAACisBKQIBfwF/A0AgASAAakEDbEEHcyACaiEBIAJBAWohAiACIABIDQALIAEL',
  'base64',
)

/** The same module with an additional section. Without this section, V8 would reuse the code of the first module. */
const SAME_LOOP_IN_OTHER_BYTES = Buffer.concat([LOOP, Buffer.from([0, 2, 1, 0x61])])

setFlagsFromString('--allow-natives-syntax')
const isOptimized = new Function('f', 'return %IsTurboFanFunction(f)') as (f: Loop) => boolean

/** Calls `f` often, and waits for V8's compiler threads. Returns whether V8 has optimized `f`. */
async function isOptimizedWhenHot(f: Loop): Promise<boolean> {
  for (let round = 0; round < 100 && !isOptimized(f); round += 1) {
    for (let call = 0; call < 20; call += 1) f(20_000)
    await sleep(5)
  }
  return isOptimized(f)
}

it('V8 optimizes all WebAssembly except modules that are compiled inside withoutOptimizingWasm', async () => {
  const isOptimizedMeanwhile = await withoutOptimizingWasm(async () => {
    const postgres = new WebAssembly.Instance(new WebAssembly.Module(LOOP)).exports.f
    await withoutOptimizingWasm(async () => {})
    await isOptimizedWhenHot(postgres)
    return () => isOptimizedWhenHot(postgres)
  })
  const other = new WebAssembly.Instance(new WebAssembly.Module(SAME_LOOP_IN_OTHER_BYTES)).exports.f
  expect(await isOptimizedWhenHot(other)).toBe(true)
  expect(await isOptimizedMeanwhile()).toBe(false)
})

it('`tickRecord` is the internal object of Node that contains the callback and the async ID of a tick', async () => {
  keepShapeOfTicks()
  await sleep(1)
  expect(tickRecord).toMatchObject({ callback: expect.any(Function) })
  expect(Object.getOwnPropertySymbols(tickRecord).map(String)).toContain('Symbol(async_id_symbol)')
})
