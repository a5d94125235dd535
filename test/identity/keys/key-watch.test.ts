// Tests when a replica reads the stored keys again: after changes, and every second while the feed is not available.
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

it('the signing keys are read once after each notification about them, and at no other time', async () => {
  await vi.advanceTimersByTimeAsync(60_000)
  feed.tell('user 1')
  feed.tell('key abc')
  expect(reload).not.toHaveBeenCalled()
  feed.tell('signing_keys')
  expect(reload).toHaveBeenCalledTimes(1)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(reload).toHaveBeenCalledTimes(1)
})

it('if notifications arrive while the signing keys are read, the keys are read once more', async () => {
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

it('while the feed is not available, the signing keys are read every second, and once more when the feed returns', async () => {
  feed.trust(false)
  await vi.advanceTimersByTimeAsync(3_000)
  expect(reload).toHaveBeenCalledTimes(3)
  feed.trust(true)
  expect(reload).toHaveBeenCalledTimes(4)
  await vi.advanceTimersByTimeAsync(10_000)
  expect(reload).toHaveBeenCalledTimes(4)
})

it('while the store is down, the signing keys are read every second until a read succeeds', async () => {
  reload.mockRejectedValue(new StorageError('away', undefined, undefined))
  feed.tell('signing_keys')
  await vi.advanceTimersByTimeAsync(5_000)
  expect(reload).toHaveBeenCalledTimes(6)
  reload.mockResolvedValue()
  await vi.advanceTimersByTimeAsync(10_000)
  expect(reload).toHaveBeenCalledTimes(7)
  expect(onError).not.toHaveBeenCalled()
})

it('an error about a signing key that cannot be decrypted is reported only once for each change of the keys', async () => {
  const unreadable = new KeyError('auth.key_secret is another one')
  reload.mockRejectedValue(unreadable)
  feed.tell('signing_keys')
  await vi.advanceTimersByTimeAsync(10_000)
  expect(onError.mock.calls).toEqual([[unreadable]])
})

it('the signing keys are not read after a stop', async () => {
  stop()
  feed.trust(false)
  await vi.advanceTimersByTimeAsync(10_000)
  expect(reload).not.toHaveBeenCalled()
})
