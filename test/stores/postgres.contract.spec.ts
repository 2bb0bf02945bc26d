import { postgresStore } from 'nestjs-distributed-lock/postgres';
import { wholeStoreContract } from '../contract/store.contracts.js';
import { usePostgres } from './postgres/setting.js';

const setting = usePostgres();

wholeStoreContract('postgres', () => postgresStore({ url: setting.url }));
