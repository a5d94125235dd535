// The CRC-32 of zlib, PNG and Ethernet (ISO-HDLC, polynomial 0xEDB88320 reflected). Node has its own since 20.15 only.

/** An unsigned 32-bit number. */
export function crc32(bytes: Uint8Array): number {
  let remainder = 0xffffffff
  for (const byte of bytes) remainder = (table[(remainder ^ byte) & 0xff] as number) ^ (remainder >>> 8)
  return (remainder ^ 0xffffffff) >>> 0
}

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte
  for (let bit = 0; bit < 8; bit += 1) remainder = (remainder >>> 1) ^ (remainder & 1 ? 0xedb88320 : 0)
  return remainder
})
