// Caches a document of an identity provider, and limits how often it is fetched.
import { createSingleFlight } from '../async/single-flight.ts'
import type { Clock } from '../clock.ts'

export interface CachedDocument<T> {
  /**
   * Returns the cached document if it is fresh. Otherwise fetches the document. If the fetch fails, returns the cached
   * document while it is usable.
   * @throws the error of `fetch`
   */
  get(): Promise<T>
  /**
   * Fetches the document. Concurrent calls share one fetch.
   * @throws the error of `fetch`; for 5 s after an error, throws the same error without a new fetch
   */
  fetch(): Promise<T>
  /** @throws the error of the last fetch, if it failed less than 5 s ago */
  throwIfFailing(): void
}

interface Options<T> {
  fetch(): Promise<T>
  readonly clock: Clock
  /** How long the document is used without a new fetch. */
  readonly freshMs: number
  /** How long the document is used if fetches fail, counted from the last successful fetch. */
  readonly usableMs: number
}

/** The pause after a failed fetch. */
const pauseMs = 5_000

export function createCachedDocument<T>({ fetch, clock, freshMs, usableMs }: Options<T>): CachedDocument<T> {
  let cached: { document: T; atMs: number } | undefined
  let failed: { error: unknown; atMs: number } | undefined

  const flight = createSingleFlight(async (_: 'document') => {
    try {
      const document = await fetch()
      cached = { document, atMs: clock.now() }
      failed = undefined
      return document
    } catch (error) {
      failed = { error, atMs: clock.now() }
      throw error
    }
  })

  function throwIfFailing(): void {
    if (failed !== undefined && isWithin(clock, failed.atMs, pauseMs)) throw failed.error
  }

  async function fetchUnlessFailing(): Promise<T> {
    throwIfFailing()
    return flight.run('document')
  }

  return {
    async get() {
      if (cached !== undefined && isWithin(clock, cached.atMs, freshMs)) return cached.document
      try {
        return await fetchUnlessFailing()
      } catch (error) {
        if (cached !== undefined && isWithin(clock, cached.atMs, usableMs)) return cached.document
        throw error
      }
    },
    fetch: fetchUnlessFailing,
    throwIfFailing,
  }
}

/**
 * Returns whether less than `limitMs` have passed since `atMs`. If `atMs` is in the future, the clock was set back. The
 * result is then false.
 */
export function isWithin(clock: Clock, atMs: number, limitMs: number): boolean {
  const ageMs = clock.now() - atMs
  return ageMs >= 0 && ageMs < limitMs
}
