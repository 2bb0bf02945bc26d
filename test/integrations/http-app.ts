import 'reflect-metadata';
import type { INestApplication, ModuleMetadata } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { DistributedLockModule, Locks, type DistributedLockModuleOptions } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { isTaken, type Booted } from '../nest/boot.js';

/** What Nest serves HTTP by. */
export const ADAPTERS = ['express', 'fastify'] as const;
export type Adapter = (typeof ADAPTERS)[number];

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  /** The text as JSON; undefined where it is none. */
  body: unknown;
}

/** An app that listens on a free port. It is closed after the test. */
export interface Served extends Booted {
  readonly url: string;
  ask(path: string, init?: RequestInit): Promise<Answer>;
  post(path: string, body?: unknown): Promise<Answer>;
}

const running: INestApplication[] = [];

afterEach(async () => {
  await Promise.all(running.splice(0).map((app) => app.close()));
});

export async function serve(
  adapter: Adapter,
  metadata: ModuleMetadata,
  options: Partial<DistributedLockModuleOptions> = {},
  configure?: (app: INestApplication) => void,
): Promise<Served> {
  const store = options.store ?? memoryStore();
  const forRoot = DistributedLockModule.forRoot({ logger: false, ...options, store });
  const module = await Test.createTestingModule({ ...metadata, imports: [forRoot, ...(metadata.imports ?? [])] }).compile();
  // A test that fails with a stream open must not hang when it closes its app.
  const quiet = { logger: false, forceCloseConnections: true } as const;
  const app: INestApplication =
    adapter === 'express' ? module.createNestApplication(quiet) : module.createNestApplication(new FastifyAdapter(quiet), quiet);
  configure?.(app);
  running.push(app);
  await app.listen(0, '127.0.0.1');
  const url = (await app.getUrl()).replace('[::1]', '127.0.0.1');
  const locks = app.get(Locks);
  const acquired: string[] = [];
  locks.on('acquired', ({ key }) => void acquired.push(key));
  const waiting: string[] = [];
  locks.on('waiting', ({ key }) => void waiting.push(key));
  const ask = async (path: string, init?: RequestInit) => answerOf(await fetch(`${url}/${path}`, { redirect: 'manual', ...init }));
  const post = (path: string, body: unknown = {}) =>
    ask(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  return { app, store, locks, acquired, waiting, url, ask, post, get: (type) => app.get(type), isTaken: (key) => isTaken(store, key) };
}

async function answerOf(response: Response): Promise<Answer> {
  const text = await response.text();
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    // Not every answer is JSON.
  }
  return { status: response.status, headers: response.headers, text, body };
}
