import { minoritiesMayFail } from './faults.js';
import { useQuorum } from './setting.js';

const setting = useQuorum(5);
const indexes = [0, 1, 2, 3, 4];
/** Each server, and each two of them. */
const minorities = indexes.flatMap((one) => indexes.filter((other) => other >= one).map((other) => [...new Set([one, other])]));

describe('a minority of the servers', () => minoritiesMayFail(setting, minorities));
