import { expectNoUpdateLost } from './crowd.js';

it('3 processes on MariaDB, one of which is killed and replaced now and then, lose no update (G2, G8)', () => expectNoUpdateLost(3, 4));
