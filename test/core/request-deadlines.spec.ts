import { RequestDeadlines, type TimedRequest } from '../../lib/core/store/request-deadlines.js';
import { LinkedEntry } from '../../lib/core/util/linked-list.js';

class Request extends LinkedEntry<Request> implements TimedRequest<Request> {
  endsAt = 0;
  constructor(readonly name: string) {
    super();
  }
}

describe('the deadlines of requests', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it('are kept for each request, also if the end of one begins another (G9)', async () => {
    const ends: string[] = [];
    const start = performance.now();
    const deadlines: RequestDeadlines<Request> = new RequestDeadlines<Request>(300, (request) => {
      deadlines.end(request);
      ends.push(`${request.name} ${Math.round(performance.now() - start)}`);
      if (request.name === 'first') deadlines.begin(new Request('probe'));
    });
    deadlines.begin(new Request('first'));
    await jest.advanceTimersByTimeAsync(10);
    deadlines.begin(new Request('second'));
    await jest.advanceTimersByTimeAsync(1_000);
    expect(ends).toEqual([
      expect.stringMatching(/^first 30\d$/),
      expect.stringMatching(/^second 31\d$/),
      expect.stringMatching(/^probe 60\d$/),
    ]);
  });
});
