// Creates caches that remove the least recently used entry when they are full.
import { LRUCache } from 'lru-cache'

export function createLru<Key extends {}, Value extends {}>(maxEntries: number): LRUCache<Key, Value> {
  // With the option `max`, lru-cache would allocate the memory of all entries at once.
  return new LRUCache({ maxSize: maxEntries, sizeCalculation: () => 1 })
}
