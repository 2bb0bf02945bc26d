import type { NestApplicationOptions } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { boot, listen } from '../nest/boot.js';

/** What Nest serves HTTP by. */
export const ADAPTERS = ['express', 'fastify'] as const;
export type Adapter = (typeof ADAPTERS)[number];

export type Answer = Awaited<ReturnType<typeof answerOf>>;

/** An app that listens on a free port. It is closed after the test. */
export async function serve(
  adapter: Adapter,
  metadata: Parameters<typeof boot>[0],
  options?: Parameters<typeof boot>[1],
  configure?: Parameters<typeof boot>[2],
  appOptions: NestApplicationOptions = {},
) {
  // A test that fails with a stream open must not hang when it closes its app.
  const quiet = { logger: false, forceCloseConnections: true, ...appOptions } as const;
  const booted = await boot(metadata, options, configure, (module) =>
    adapter === 'express'
      ? module.createNestApplication(quiet)
      : module.createNestApplication(new FastifyAdapter({ logger: false, forceCloseConnections: quiet.forceCloseConnections }), quiet),
  );
  const url = await listen(booted.app);
  const ask = async (path: string, init?: RequestInit) => answerOf(await fetch(`${url}/${path}`, { redirect: 'manual', ...init }));
  const post = (path: string, body: unknown = {}) =>
    ask(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  return { ...booted, url, ask, post };
}

/** A store whose server does not exist. */
export const storeThatIsAway = () =>
  redisStore({ options: { path: '/nobody/listens/here.sock', disconnectTimeout: 10 }, requestTimeout: 2_000 });

async function answerOf(response: Response) {
  const text = await response.text();
  /** The text as JSON; undefined where it is none. */
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    // It stays undefined.
  }
  return { status: response.status, headers: response.headers, text, body };
}
