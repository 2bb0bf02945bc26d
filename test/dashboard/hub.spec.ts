import type { ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import { Locks } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { Hub } from '../../lib/dashboard/hub.js';
import { eventually, staysTrue } from '../support/eventually.js';

it('a page that reads slowly misses changes, and gets all rows when it reads again', async () => {
  const locks = new Locks(memoryStore(), { logger: false, defaults: { keyTimeout: 60_000 } });
  const hub = new Hub(new Map([['default', locks]]), (key) => key);
  const page = new PassThrough({ highWaterMark: 1000 });
  const acquire = (count: number) => Promise.all(Array.from({ length: count }, (_, i) => locks.acquire(`${count}-${i}`)));
  await acquire(50);
  hub.open(page as unknown as ServerResponse, { me: { by: null, mayRelease: false }, traceUrl: null });
  await eventually(() => page.writableNeedDrain);
  const before = page.writableLength;
  await acquire(60);
  await staysTrue(() => expect(page.writableLength).toBe(before), 2500);
  let text = '';
  page.setEncoding('utf8').on('data', (part: string) => (text += part));
  await eventually(() => {
    const last = text.lastIndexOf('event: rows\ndata: {"isFirst":true');
    expect(text.slice(last).match(/"key":"60-\d+"/g)).toHaveLength(60);
  });
  hub.close();
  page.destroy();
  await locks.close();
});
