import type { Deadlock, ForceReply, KeyReport, Locks } from 'nestjs-distributed-lock/core';

export async function show(locks: Locks): Promise<string[]> {
  const print: string[] = [];
  const console = { log: (line: string) => print.push(line) };
  // #region operate-inspect
  const { kind, holders, waiters } = await locks.inspect('order:42');
  for (const { owner, since, report } of holders) console.log(`${kind}, held by ${owner} (${report?.label}) since ${since?.toISOString()}`);
  for (const { app, host, pid, report } of waiters)
    console.log(`waits: ${app}@${host}:${pid}, ${report?.[0]?.waiting ?? 'unknown'} callers`);
  // #endregion
  return print;
}

export async function oldest(locks: Locks): Promise<string[]> {
  const print: string[] = [];
  const console = { log: (line: string) => print.push(line) };
  // #region operate-list
  for await (const { key } of locks.list({ pattern: 'order:*', state: 'held', olderThan: 60_000 })) console.log(key);
  // #endregion
  return print;
}

export async function watch(locks: Locks, signal: AbortSignal): Promise<string[]> {
  const print: string[] = [];
  const console = { log: (line: string) => print.push(line) };
  // #region operate-watch
  for await (const { event, key, label, app, pid } of locks.watch({ pattern: 'order:*', signal }))
    console.log(`${key}: ${event}, ${label} of ${app}:${pid}`);
  // #endregion
  return print;
}

export async function free(locks: Locks): Promise<ForceReply> {
  // #region operate-force
  const { holders, fencingToken } = await locks.inspect('order:42');
  const reply = await locks.forceRelease('order:42', {
    owner: holders[0]?.owner, // left alone if another one holds it by now
    token: holders[0]?.report?.fencingToken ?? fencingToken ?? undefined, // nor is the next caller of its process
    reason: 'import hangs, ticket 1234',
    by: 'jane',
    grace: 5_000,
  });
  // #endregion
  return reply;
}

export async function deadlocks(locks: Locks): Promise<Deadlock[]> {
  // #region operate-deadlocks
  const reports = new Map<string, KeyReport>();
  for await (const report of locks.list({ state: 'used' })) reports.set(report.key, report);
  const found = locks.waitGraph(reports.values());
  // #endregion
  return found;
}
