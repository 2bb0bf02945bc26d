import { context, trace } from '@opentelemetry/api';
import { Locks } from 'nestjs-distributed-lock/core';
import { openTelemetry } from 'nestjs-distributed-lock/opentelemetry';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { createHook } from 'node:async_hooks';
import { pause } from '../support/time.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { startSdk, type Sdk } from './sdk.js';

/** What stays in memory after the call that made it, and keeps the context of that call. */
const LASTING = ['Timeout', 'TCPWRAP', 'TCPCONNECTWRAP', 'PIPEWRAP', 'PIPECONNECTWRAP', 'TLSWRAP', 'DNSCHANNEL'];

/** The exporter of the SDK has timers. That of ioredis ends with the reply, and its request is a part of the call. */
const NOT_OURS = /InMemorySpanExporter|setSocketTimeout/;

describe('the context of a span', () => {
  let server: RedisServer;
  let sdk: Sdk;
  beforeAll(async () => {
    server = await startRedis();
    sdk = startSdk();
  });
  afterAll(async () => {
    await sdk.stop();
    await server.stop();
  });

  it('is in no timer and no socket of ours, whatever the call that made them', async () => {
    const made: string[] = [];
    const inSpan: string[] = [];
    const hook = createHook({
      init(_id, type) {
        if (!LASTING.includes(type)) return;
        made.push(type);
        const { stack = '' } = new Error();
        if (trace.getSpan(context.active()) && !NOT_OURS.test(stack)) inSpan.push(`${type} ${stack}`);
      },
    });
    const opened: Locks[] = [];
    const open = () => {
      const locks = new Locks(redisStore({ options: { ...server.connection } }), { telemetry: openTelemetry(), logger: false });
      opened.push(locks);
      return locks;
    };
    hook.enable();
    // The first call opens the connection, the first wait the subscription; a lease of 90 ms is renewed; a maxHold has a timer.
    await sdk.inSpan('request', async () => {
      const [here, there] = [open(), open()];
      const lease = await here.acquire('key', { keyTimeout: 90, maxHold: 60_000 });
      const waiters = [here, there].map((locks) => locks.using('key', () => undefined, { waitTimeout: 20_000 }));
      const impatient = there.acquire('key', { waitTimeout: 50 }).catch(() => undefined);
      await Promise.all([impatient, sleepOutside(300)]);
      await lease.release();
      await Promise.all(waiters);
    });
    await Promise.all(opened.map((locks) => locks.close()));
    hook.disable();
    expect(made).toEqual(expect.arrayContaining(['Timeout', 'PIPEWRAP']));
    expect(inSpan).toEqual([]);
  });
});

/** The test's own timer must not be taken for one of ours. */
function sleepOutside(ms: number): Promise<void> {
  return context.with(trace.deleteSpan(context.active()), () => pause(ms));
}
