import { Controller, Get, Inject, Injectable, Scope } from '@nestjs/common';
import { type ContextId, ContextIdFactory, type ContextIdStrategy, type HostComponentInfo, REQUEST } from '@nestjs/core';
import { currentLease, DistributedLock } from 'nestjs-distributed-lock';
import { boot, listen } from '../nest/boot.js';
import { Counter, expectOneAtATime } from './counter.js';
import { way } from './place.js';

way('Providers', 'request scope', () => {
  @Injectable({ scope: Scope.REQUEST })
  class RequestCounter extends Counter {}

  it('is locked across the instances of several requests', async () => {
    const booted = await boot({ providers: [RequestCounter] });
    const counters = await Promise.all([booted.app.resolve(RequestCounter), booted.app.resolve(RequestCounter)]);
    expect(counters[0]).not.toBe(counters[1]);
    await expectOneAtATime(booted, ...counters);
  });

  it('is locked in one that is injected into a controller', async () => {
    @Controller()
    class CountController {
      constructor(@Inject(RequestCounter) private readonly counter: RequestCounter) {}
      @Get()
      async count() {
        return { count: await this.counter.count() };
      }
    }
    const booted = await boot({ controllers: [CountController], providers: [RequestCounter] });
    const url = await listen(booted.app);
    const ask = async () => expect((await fetch(url)).status).toBe(200);
    await expectOneAtATime(booted, { count: ask });
  });
});

way('Providers', 'transient scope', () => {
  @Injectable({ scope: Scope.TRANSIENT })
  class TransientCounter extends Counter {}

  it('is locked across the instances of several owners', async () => {
    @Injectable()
    class Shop {
      constructor(@Inject(TransientCounter) readonly counter: TransientCounter) {}
    }
    @Injectable()
    class Depot {
      constructor(@Inject(TransientCounter) readonly counter: TransientCounter) {}
    }
    const booted = await boot({ providers: [TransientCounter, Shop, Depot] });
    const counters = [booted.get(Shop).counter, booted.get(Depot).counter];
    expect(counters[0]).not.toBe(counters[1]);
    await expectOneAtATime(booted, ...counters);
  });
});

way('Providers', 'durable, one instance for each tenant', () => {
  /** As in the documentation of Nest: what is made for a tenant is kept for its later requests. */
  class ByTenant implements ContextIdStrategy<{ headers: Record<string, string> }> {
    private readonly tenants = new Map<string, ContextId>();

    attach(contextId: ContextId, { headers }: { headers: Record<string, string> }) {
      const tenant = headers['x-tenant'] ?? '';
      const known = this.tenants.get(tenant) ?? ContextIdFactory.create();
      this.tenants.set(tenant, known);
      return {
        resolve: ({ isTreeDurable }: HostComponentInfo) => (isTreeDurable ? known : contextId),
        payload: { tenant },
      };
    }
  }
  const made: string[] = [];
  const runs: unknown[] = [];

  @Injectable({ scope: Scope.REQUEST, durable: true })
  class TenantCounter extends Counter {
    constructor(@Inject(REQUEST) readonly context: { tenant: string }) {
      super();
      made.push(context.tenant);
    }
    @DistributedLock<TenantCounter['bill']>({ value: 'bill', key: (year) => year })
    async bill(year: number) {
      runs.push([this.context.tenant, year, currentLease()?.key]);
    }
  }
  @Controller()
  class TenantController {
    constructor(@Inject(TenantCounter) private readonly counter: TenantCounter) {}
    @Get('count')
    async count() {
      return { count: await this.counter.count() };
    }
    @Get('bill')
    async bill() {
      return { bill: await this.counter.bill(2030) };
    }
  }

  async function bootTenants() {
    const booted = await boot({ controllers: [TenantController], providers: [TenantCounter] });
    const url = await listen(booted.app);
    const ask = async (path: string, tenant: string) =>
      expect((await fetch(`${url}/${path}`, { headers: { 'x-tenant': tenant } })).status).toBe(200);
    return { booted, ask };
  }
  beforeEach(() => {
    [made, runs].forEach((list) => list.splice(0));
    ContextIdFactory.apply(new ByTenant());
  });
  afterEach(() => ContextIdFactory.apply(undefined as unknown as ContextIdStrategy));

  it('is locked across the tenants, each of which keeps its instance', async () => {
    const { booted, ask } = await bootTenants();
    await expectOneAtATime(booted, { count: () => ask('count', 'a') }, { count: () => ask('count', 'b') });
    const ofFirstRequests = made.length;
    await ask('count', 'a');
    expect(made).toHaveLength(ofFirstRequests);
    expect(new Set(made)).toEqual(new Set(['a', 'b']));
  });

  it('shares its key between the tenants unless the tenant is a part of it', async () => {
    const { booted, ask } = await bootTenants();
    await ask('bill', 'a');
    await ask('bill', 'b');
    expect(runs).toEqual([
      ['a', 2030, 'bill-2030-locks'],
      ['b', 2030, 'bill-2030-locks'],
    ]);
    expect(booted.acquired).toEqual(['bill-2030-locks', 'bill-2030-locks']);
  });
});
