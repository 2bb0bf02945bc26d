import 'reflect-metadata';
import { Controller, Get, Inject, Injectable, Module, type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { Server } from 'node:http';
import { Locks, runStandby, type Standby, type StandbyOptions, type Term } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { Gate } from '../support/gate.js';

/** What a candidate of a test has done and been, in order, and where it can be stopped. */
export class Diary {
  readonly lines: string[] = [];
  readonly terms: Term[] = [];
  readonly apps: INestApplication[] = [];
  /** Requests under way wait here. */
  readonly requests = new Gate();
  /** What each hook of the shutdown does. */
  onDestroy: () => unknown = () => undefined;

  get term(): Term {
    return this.terms.at(-1)!;
  }
  get app(): INestApplication {
    return this.apps.at(-1)!;
  }
  get server(): Server {
    return serverOf(this.app);
  }
}

export const serverOf = (app: INestApplication): Server => app.getHttpServer() as Server;

/** An app that writes what happens to it into the diary; it serves `GET /` at once, and `GET /slow` behind the gate. */
function appOf(diary: Diary, number: number) {
  @Injectable()
  class Worker {
    onModuleInit = () => void diary.lines.push(`init ${number}`);
    onApplicationBootstrap = () => void diary.lines.push(`bootstrap ${number}`);
    async onModuleDestroy(): Promise<void> {
      diary.lines.push(`destroy ${number}`);
      await diary.onDestroy();
    }
    onApplicationShutdown = () => void diary.lines.push(`shutdown ${number}`);
  }
  @Controller()
  class Page {
    constructor(@Inject(Worker) readonly worker: Worker) {}
    @Get()
    fast(): string {
      return 'fast';
    }
    @Get('slow')
    async slow(): Promise<string> {
      await diary.requests.pass();
      return 'slow';
    }
  }
  @Module({ controllers: [Page], providers: [Worker] })
  class AppModule {}
  return AppModule;
}

export type Overrides = Partial<StandbyOptions<INestApplication>>;

const running: Standby[] = [];
const opened: Locks[] = [];

afterEach(async () => {
  await Promise.allSettled(running.splice(0).map((standby) => standby.stop()));
  await Promise.all(opened.splice(0).map((locks) => locks.close()));
});

export function openLocks(store = memoryStore()): Locks {
  const locks = new Locks(store, { logger: false, shutdownTimeout: 20_000 });
  opened.push(locks);
  return locks;
}

/** A candidate whose app listens on a free port once it is elected. It is stopped after the test. */
export function candidate(locks: Locks, overrides: Overrides = {}, diary = new Diary()): { diary: Diary; standby: Standby } {
  let created = 0;
  const options: StandbyOptions<INestApplication> = {
    locks,
    name: 'app',
    keyTimeout: 60_000,
    retryInterval: 60_000,
    async create() {
      const app = await NestFactory.create(appOf(diary, ++created), { logger: false, abortOnError: false });
      diary.apps.push(app);
      diary.lines.push(`create ${created}`);
      return app;
    },
    prepare: () => void diary.lines.push(`prepare ${created}`),
    async start(app, term) {
      diary.terms.push(term);
      diary.lines.push(`start ${created}`);
      await app.listen(0, '127.0.0.1');
      diary.lines.push(`listen ${created}`);
    },
    ...overrides,
  };
  const standby = runStandby(options);
  standby.done.catch(() => undefined);
  running.push(standby);
  return { diary, standby };
}

/** Somebody deletes the key of the term, and its holder finds out. */
export async function lose({ store }: Locks, term: Term): Promise<void> {
  await store.mutex.release({ key: term.key, owner: term.owner, keepFor: 0 });
  await term.renew().catch(() => undefined);
}

export async function ask(app: INestApplication, path = ''): Promise<string> {
  const response = await fetch(`${await app.getUrl()}/${path}`, { headers: { connection: 'close' } });
  return response.text();
}
