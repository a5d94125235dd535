// A replica reloads the stored keys on a change, after a gap in the feed, and periodically while the feed is lost.
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { KeyError } from '../../../src/identity/keys/signing-key.ts'
import { watchKeys } from '../../../src/identity/keys/signing-keys.ts'
import { StorageError } from '../../../src/storage/database.ts'
import { type HandFeed, handFeed } from '../../support/hand-feed.ts'

let feed: HandFeed
let reload: ReturnType<typeof vi.fn<() => Promise<void>>>
const onError = vi.fn()
let stop: () => void

beforeEach(() => {
  vi.useFakeTimers()
  onError.mockClear()
  feed = handFeed()
  reload = vi.fn(async () => {})
  stop = watchKeys({ keys: { reload }, feed, onError })
})
afterEach(() => {
  stop()
  vi.useRealTimers()
})

it('they are read at once when they changed, and never while nothing is said', async () => {
  await vi.advanceTimersByTimeAsync(60_000)
  feed.tell('user 1')
  feed.tell('key abc')
  expect(reload).not.toHaveBeenCalled()
  feed.tell('signing_keys')
  expect(reload).toHaveBeenCalledTimes(1)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(reload).toHaveBeenCalledTimes(1)
})

it('a change that is told while they are being read makes them be read once more', async () => {
  let resolve = () => {}
  reload.mockReturnValueOnce(
    new Promise(done => {
      resolve = done
    }),
  )
  for (let i = 0; i < 5; i += 1) feed.tell('signing_keys')
  expect(reload).toHaveBeenCalledTimes(1)
  resolve()
  await vi.advanceTimersByTimeAsync(0)
  expect(reload).toHaveBeenCalledTimes(2)
})

it('after a gap they are read again; without the feed every second', async () => {
  feed.trust(false)
  await vi.advanceTimersByTimeAsync(3_000)
  expect(reload).toHaveBeenCalledTimes(3)
  feed.trust(true)
  expect(reload).toHaveBeenCalledTimes(4)
  await vi.advanceTimersByTimeAsync(10_000)
  expect(reload).toHaveBeenCalledTimes(4)
})

it('where the store is away they are read as soon as it is back', async () => {
  reload.mockRejectedValue(new StorageError('away', undefined, undefined))
  feed.tell('signing_keys')
  await vi.advanceTimersByTimeAsync(5_000)
  expect(reload).toHaveBeenCalledTimes(6)
  reload.mockResolvedValue()
  await vi.advanceTimersByTimeAsync(10_000)
  expect(reload).toHaveBeenCalledTimes(7)
  expect(onError).not.toHaveBeenCalled()
})

it('where they cannot be opened it is said once for each change', async () => {
  const unreadable = new KeyError('auth.key_secret is another one')
  reload.mockRejectedValue(unreadable)
  feed.tell('signing_keys')
  await vi.advanceTimersByTimeAsync(10_000)
  expect(onError.mock.calls).toEqual([[unreadable]])
})

it('nothing is read when it has been stopped', async () => {
  stop()
  feed.trust(false)
  await vi.advanceTimersByTimeAsync(10_000)
  expect(reload).not.toHaveBeenCalled()
})
