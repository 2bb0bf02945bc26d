import { endOfFrame, isPush, wholeUpTo } from './resp.js';

/** How a protocol is cut into requests and replies, one reply to each request. */
export interface Framing {
  /** The bytes of the first request, or -1 when it has not arrived whole. */
  endOfRequest(bytes: Buffer): number;
  endOfReply(bytes: Buffer): number;
  /** A message that no request asked for. */
  isPush(frame: Buffer): boolean;
  /** Whether the server answers it; default: all. */
  isAnswered?(request: Buffer): boolean;
}

export const RESP: Framing = { endOfRequest: endOfFrame, endOfReply: endOfFrame, isPush };

/** Of any protocol: bytes pass as they come. */
export const AS_IT_COMES: Framing = { endOfRequest: ({ length }) => length, endOfReply: ({ length }) => length, isPush: () => false };

/** Without TLS and passwords. A request ends with Sync, or is a query; a reply ends with ReadyForQuery. */
export const POSTGRES: Framing = {
  // The first request has no type.
  endOfRequest: (bytes) => (bytes[0] === 0 ? wholeUpTo(bytes, bytes.length < 4 ? 4 : bytes.readInt32BE(0)) : endOfMessages(bytes, 'SQX')),
  endOfReply: (bytes) => endOfMessages(bytes, isNotification(bytes) ? 'A' : 'Z'),
  isPush: (frame) => isNotification(frame),
};

/** Without TLS. Each packet is a frame: its number says whether it is a request, and whether it begins a reply. Replies have at most 255 packets. */
export const MYSQL: Framing = {
  endOfRequest: endOfPacket,
  endOfReply: endOfPacket,
  isPush: (frame) => frame[3] !== 1,
  isAnswered: (frame) => frame[3] === 0,
};

/** Each packet has its length before it, and the number of its request: -1 is an event of a watch. */
export const ZOOKEEPER: Framing = {
  endOfRequest: endOfSized,
  endOfReply: endOfSized,
  isPush: (frame) => frame.readInt32BE(4) === -1,
};

function endOfSized(bytes: Buffer): number {
  return bytes.length < 4 ? -1 : wholeUpTo(bytes, 4 + bytes.readInt32BE(0));
}

/** A length, without the header of four bytes. */
function endOfPacket(bytes: Buffer): number {
  return bytes.length < 4 ? -1 : wholeUpTo(bytes, 4 + bytes.readUIntLE(0, 3));
}

function isNotification(bytes: Buffer): boolean {
  return bytes[0] === 'A'.charCodeAt(0);
}

/** Each is a type, and a length that includes itself. */
function endOfMessages(bytes: Buffer, last: string): number {
  for (let at = 0; at + 5 <= bytes.length;) {
    const end = at + 1 + bytes.readInt32BE(at + 1);
    if (last.includes(String.fromCharCode(bytes[at]!))) return wholeUpTo(bytes, end);
    at = end;
  }
  return -1;
}
