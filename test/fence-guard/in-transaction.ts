import type pgDriver from 'pg';

/** Runs the work in a transaction of a connection of its own. */
export function byStatements<Tx extends { release(): void }>(
  connect: () => Promise<Tx>,
  send: (tx: Tx, statement: string) => Promise<unknown>,
) {
  return async <T>(work: (tx: Tx) => Promise<T>): Promise<T> => {
    const tx = await connect();
    try {
      await send(tx, 'BEGIN');
      const result = await work(tx);
      await send(tx, 'COMMIT');
      return result;
    } catch (error) {
      await send(tx, 'ROLLBACK');
      throw error;
    } finally {
      tx.release();
    }
  };
}

export const inTransactionOf = (pool: pgDriver.Pool) =>
  byStatements(
    () => pool.connect(),
    (tx, statement) => tx.query(statement),
  );
