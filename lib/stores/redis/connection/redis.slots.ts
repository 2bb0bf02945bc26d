import type { RedisClient } from './redis.client.js';

const SLOTS = 16_384;

/** CRC16 as XMODEM has it, for each byte. */
const CRCS = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc;
});

/** The slot of a Cluster that a key is in, by its hash tag if it has one. */
function slotOf(key: string): number {
  const start = key.indexOf('{') + 1;
  const end = start > 0 ? key.indexOf('}', start) : -1;
  let crc = 0;
  for (const byte of Buffer.from(end > start ? key.slice(start, end) : key)) crc = ((crc << 8) ^ CRCS[(crc >> 8) ^ byte]!) & 0xffff;
  return crc % SLOTS;
}

/** The master of a Cluster that has the key, and its replicas, as far as the client knows. */
export function nodesOf({ isCluster, slots, options }: RedisClient, key: string): readonly string[] | undefined {
  return isCluster ? slots?.[slotOf((options?.keyPrefix ?? '') + key)] : undefined;
}
