import { postgresStore } from 'nestjs-distributed-lock/postgres';
import { engineContract, storeContract } from '../contract/contracts.js';
import { usePostgres } from './postgres/setting.js';

const setting = usePostgres();
const makeStore = () => postgresStore({ url: setting.url });

storeContract('postgres', makeStore);
engineContract('postgres', makeStore, remains, async (key) => {
  const [row] = await setting.sql('SELECT record FROM distributed_lock WHERE key = $1', [key]);
  return Object.keys((JSON.parse((row?.['record'] as string | null | undefined) ?? '{}') as { waiters?: object }).waiters ?? {});
});

/** A row is kept for an hour after its end. */
async function remains(): Promise<string[]> {
  const clock = 'extract(epoch FROM clock_timestamp()) * 1000';
  return (await setting.sql(`SELECT key FROM distributed_lock WHERE ends_at > ${clock} + 3600000`)).map(({ key }) => String(key));
}
