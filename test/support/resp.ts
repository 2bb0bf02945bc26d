const SIMPLE = '+-:_,#(';
const BULK = '$=!';
const LIST = '*~>';
const PAIRS = '%|';

/** Where the RESP value that starts at `at` ends, or -1 when it has not arrived whole. Inline commands count as one line. */
export function endOfFrame(bytes: Buffer, at = 0): number {
  const lineEnd = bytes.indexOf('\r\n', at);
  if (lineEnd < 0) return -1;
  const type = String.fromCharCode(bytes[at]!);
  const afterLine = lineEnd + 2;
  if (SIMPLE.includes(type)) return afterLine;
  const length = Number(bytes.toString('latin1', at + 1, lineEnd));
  if (BULK.includes(type)) return length < 0 ? afterLine : wholeUpTo(bytes, afterLine + length + 2);
  if (LIST.includes(type)) return endOfFrames(bytes, afterLine, length);
  if (PAIRS.includes(type)) return endOfFrames(bytes, afterLine, 2 * length + (type === '|' ? 1 : 0)); // | precedes its value
  return afterLine;
}

/** A message that no request asked for (RESP3). */
export function isPush(frame: Buffer): boolean {
  return frame[0] === '>'.charCodeAt(0);
}

function endOfFrames(bytes: Buffer, at: number, count: number): number {
  for (; count > 0; count--) {
    at = at < bytes.length ? endOfFrame(bytes, at) : -1;
    if (at < 0) return -1;
  }
  return at;
}

export function wholeUpTo(bytes: Buffer, end: number): number {
  return end <= bytes.length ? end : -1;
}
