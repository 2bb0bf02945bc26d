// The columns that several tables have.

export const overlapping = { key: 'overlaps', title: 'overlaps', total: true };
export const failing = { key: 'failed', title: 'failed', total: true };
export const requestsPerSection = { key: 'requestsPerSection', title: 'requests per section', digits: 3 };
