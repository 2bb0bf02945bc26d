import type { Deadlock, ForceReply, KeyReport, Locks } from 'nestjs-distributed-lock/core';

export async function show(locks: Locks): Promise<string[]> {
  const print: string[] = [];
  // #region operate-inspect
  const { kind, holders, waiters } = await locks.inspect('order:42');
  for (const { owner, since, told } of holders) print.push(`${kind}, held by ${owner} (${told?.label}) since ${since?.toISOString()}`);
  for (const { app, host, pid, told } of waiters) print.push(`waits: ${app}@${host}:${pid}, ${told?.[0]?.waiting ?? 'unknown'} callers`);
  // #endregion
  return print;
}

export async function oldest(locks: Locks): Promise<KeyReport[]> {
  const found: KeyReport[] = [];
  // #region operate-list
  for await (const report of locks.list({ pattern: 'order:*', state: 'held', olderThan: 60_000 })) found.push(report);
  // #endregion
  return found;
}

export async function watch(locks: Locks, signal: AbortSignal): Promise<string[]> {
  const print: string[] = [];
  // #region operate-watch
  for await (const { event, key, label, app, pid } of locks.watch({ pattern: 'order:*', signal }))
    print.push(`${key}: ${event}, ${label} of ${app}:${pid}`);
  // #endregion
  return print;
}

export async function free(locks: Locks): Promise<ForceReply> {
  // #region operate-force
  const { holders, fencingToken } = await locks.inspect('order:42');
  const reply = await locks.forceRelease('order:42', {
    owner: holders[0]?.owner, // left alone if another one holds it by now
    token: holders[0]?.told?.fencingToken ?? fencingToken ?? undefined, // nor is the next caller of its process
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
