// A sweep that comes by chance takes a connection, which tests count.
import { RecordSweep } from '../../lib/stores/records/record.table.js';

RecordSweep.firstOf = Infinity;
