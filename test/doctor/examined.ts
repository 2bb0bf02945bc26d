import { Locks, type DoctorOptions, type LockStore } from 'nestjs-distributed-lock/core';

/** Milliseconds to wait for a wake-up. */
const QUICK = 50;

export type Examined = Awaited<ReturnType<typeof examined>>;

/** What the doctor says of a store, which is then closed. */
export async function examined(store: LockStore, { namespace, ...options }: DoctorOptions & { namespace?: string } = {}) {
  const locks = new Locks(store, { logger: false, namespace });
  try {
    const report = await locks.doctor({ probe: QUICK, ...options });
    return {
      ...report,
      /** @throws if there is none. */
      of(id: string) {
        const check = report.checks.find((one) => one.id === id);
        if (!check) throw new Error(`no check ${id}`);
        return check;
      },
      /** Those that are not ok, as `id state`, sorted. */
      notOk: report.checks.flatMap(({ id, state }) => (state === 'ok' ? [] : [`${id} ${state}`])).sort(),
    };
  } finally {
    await locks.close();
  }
}

/** What an app writes to its log when it starts with this store, which is then closed. */
export async function startLines(store: LockStore, namespace?: string): Promise<string[]> {
  const lines: string[] = [];
  const write = (line: string): void => void lines.push(line);
  const locks = new Locks(store, { logger: { log: write, warn: write, error: write }, namespace });
  try {
    await locks.checkStore();
    return lines;
  } finally {
    await locks.close();
  }
}

/** What a test changes at a server is undone when it ends, the last change first. */
export function useChanges(ask: (statement: string) => Promise<unknown>) {
  const ends: (() => unknown)[] = [];
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });
  return {
    finally: (end: () => unknown): void => void ends.push(end),
    /** @param undo one or more statements. */
    async change(statement: string, undo: string): Promise<void> {
      ends.push(() => ask(undo));
      await ask(statement);
    },
  };
}
