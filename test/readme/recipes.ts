import { ConflictException, Controller, Injectable, Logger, type OnApplicationBootstrap, Param, Post } from '@nestjs/common';
import { currentLease, DistributedLock, LockAbortedError, Locks, Semaphore, type Term } from 'nestjs-distributed-lock';
import type { ForceReply } from 'nestjs-distributed-lock/core';
import { setTimeout as pause } from 'node:timers/promises';
import { WebSocket } from 'ws';

export abstract class Smtp {
  abstract send(tenant: string, mail: string): Promise<string>;
}
export abstract class Cache {
  abstract get(key: string): Promise<string | null>;
  abstract set(key: string, value: string): Promise<unknown>;
}
export abstract class Partner {
  abstract signIn(): Promise<string>;
}
export abstract class Catalogue {
  abstract importAll(tenant: string): Promise<string>;
}
export abstract class SearchIndex {
  abstract pages(): AsyncIterable<string>;
  abstract write(page: string, signal: AbortSignal): Promise<void>;
}
export abstract class Prices {
  abstract readonly url: string;
  abstract store(price: string, token: number): Promise<void>;
}

// #region recipe-rate
@Injectable()
export class Mailer {
  constructor(private readonly smtp: Smtp) {}

  @Semaphore<Mailer['send']>({ value: 'mail', key: (tenant) => tenant, permits: 2, minHold: 1000, waitTimeout: 30_000 })
  async send(tenant: string, mail: string): Promise<string> {
    return this.smtp.send(tenant, mail);
  }
}
// #endregion

// #region recipe-token
@Injectable()
export class PartnerToken {
  constructor(
    private readonly locks: Locks,
    private readonly cache: Cache,
    private readonly partner: Partner,
  ) {}

  /** Single-flight: callers that have waited get what the first one has stored. */
  async get(): Promise<string> {
    const stored = (): Promise<string | null> => this.cache.get('partner-token');
    const refresh = async (): Promise<string> => (await stored()) ?? this.signIn();
    return (await stored()) ?? this.locks.using('refresh-partner-token', refresh, { waitTimeout: 10_000 });
  }

  private async signIn(): Promise<string> {
    const token = await this.partner.signIn();
    await this.cache.set('partner-token', token); // with the lifetime of the token
    return token;
  }
}
// #endregion

// #region recipe-import
@Controller('tenants')
export class ImportController {
  constructor(private readonly catalogue: Catalogue) {}

  @Post(':tenant/import')
  @DistributedLock<ImportController['start']>({
    value: 'import',
    key: (tenant) => tenant,
    waitTimeout: 0,
    onTimeout: () => {
      throw new ConflictException('An import of this tenant is running.');
    },
  })
  async start(@Param('tenant') tenant: string): Promise<string> {
    return this.catalogue.importAll(tenant);
  }
}
// #endregion

// #region recipe-cancel
@Injectable()
export class Reindexer {
  constructor(
    private readonly locks: Locks,
    private readonly cache: Cache,
    private readonly index: SearchIndex,
  ) {}

  @DistributedLock({ value: 'reindex', waitTimeout: 0 })
  async run(): Promise<number> {
    const { signal } = currentLease()!;
    let done = 0;
    try {
      for await (const page of this.index.pages()) {
        await this.index.write(page, signal);
        await this.cache.set('reindex-progress', String(++done)); // where other instances can read it
      }
      return done;
    } catch (error) {
      signal.throwIfAborted(); // throws signal.reason, which has the reason of the operator
      throw error;
    }
  }

  /** On any instance. */
  async cancel(by: string, reason: string): Promise<ForceReply> {
    const { holders } = await this.locks.inspect('reindex-locks');
    return this.locks.forceRelease('reindex-locks', { owner: holders[0]?.owner, by, reason, grace: 30_000 });
  }
}
// #endregion

// #region recipe-websocket
@Injectable()
export class PriceFeed implements OnApplicationBootstrap {
  private readonly logger = new Logger('PriceFeed');

  constructor(
    private readonly locks: Locks,
    private readonly prices: Prices,
  ) {}

  onApplicationBootstrap(): void {
    const election = this.locks.leaderElection('price-feed', { keyTimeout: 5000 });
    election
      .run((term) => this.follow(term))
      .catch((error: unknown) => {
        if (!(error instanceof LockAbortedError)) this.logger.error(error); // that one: the app shuts down
      });
  }

  private async follow({ signal, fencingToken }: Term): Promise<void> {
    while (!signal.aborted) {
      const socket = new WebSocket(this.prices.url);
      const close = (): void => socket.terminate();
      signal.addEventListener('abort', close);
      socket.on('message', (price: Buffer) => void this.prices.store(price.toString(), fencingToken!));
      socket.on('error', close);
      await new Promise((resolve) => socket.once('close', resolve));
      signal.removeEventListener('abort', close);
      await pause(500);
    }
  }
}
// #endregion
