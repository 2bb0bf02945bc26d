import { recordTableContract } from '../../contract/record-table.contract.js';
import { openTable, usePostgres } from './setting.js';

const setting = usePostgres();

recordTableContract('Postgres', () => openTable({ url: setting.url }), {
  sweep: (key) => setting.sql('DELETE FROM distributed_lock WHERE key = $1', [key]),
});
