import { AsyncLocalStorage } from 'node:async_hooks';
import type { ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import { Locks } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { Hub } from '../../lib/dashboard/hub.js';
import { eventually, staysTrue } from '../support/eventually.js';

let locks: Locks;
const pages: PassThrough[] = [];
beforeEach(() => void (locks = new Locks(memoryStore(), { logger: false, defaults: { keyTimeout: 60_000 } })));
afterEach(async () => {
  jest.restoreAllMocks();
  pages.splice(0).forEach((page) => page.destroy());
  await locks.close();
});

const hubOf = (nameOf = (key: string) => key): Hub => new Hub(new Map([['default', locks]]), nameOf);

/** A page that reads nothing until the test does. */
function open(hub: Hub, highWaterMark?: number): PassThrough {
  const page = new PassThrough({ highWaterMark });
  pages.push(page);
  hub.open(page as unknown as ServerResponse, { me: { by: null, mayRelease: false }, traceUrl: null });
  return page;
}

it('a page that reads slowly misses changes, and gets all rows when it reads again', async () => {
  const hub = hubOf();
  const acquire = (count: number) => Promise.all(Array.from({ length: count }, (_, i) => locks.acquire(`${count}-${i}`)));
  await acquire(50);
  const page = open(hub, 1000);
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
});

it('follows the stores outside of the request that opened the first page', async () => {
  const request = new AsyncLocalStorage<string>();
  const seen: unknown[] = [];
  const hub = hubOf((key) => {
    seen.push(request.getStore());
    return key;
  });
  request.run('of the first page', () => open(hub));
  await locks.acquire('order:42');
  await eventually(() => seen.length > 0);
  expect(new Set(seen)).toEqual(new Set([undefined]));
  hub.close();
});

it('asks the doctor of a store once a minute at most, also where the only page is loaded again; and again after a failure', async () => {
  let time = performance.now();
  jest.spyOn(performance, 'now').mockImplementation(() => time);
  const doctor = jest.spyOn(locks, 'doctor');
  const hub = hubOf();
  open(hub);
  open(hub).destroy();
  const [first] = pages;
  first?.destroy();
  await eventually(() => first?.closed === true);
  open(hub);
  expect(doctor).toHaveBeenCalledTimes(1);

  time += 60_000;
  doctor.mockRejectedValueOnce(new Error('It does not answer.'));
  open(hub);
  expect(doctor).toHaveBeenCalledTimes(2);
  await eventually(() => {
    open(hub);
    expect(doctor).toHaveBeenCalledTimes(3);
  });
  hub.close();
});
