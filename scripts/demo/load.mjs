import autocannon from 'autocannon';

/** Seconds. Under a lock the last of many waits long, and a request that is given up shows nothing. */
const TIMEOUT = 900;
const { stderr } = process;

/**
 * Sends the requests over `concurrency` connections, spread evenly over the URLs; each connection goes from one SKU to the next.
 *
 * @returns counts of `sold` and of `answers` by SKU, `seconds` from the first request to the last answer, and percentiles in ms
 */
export async function load({ title, urls, skus, requests, concurrency }) {
  const sold = new Map();
  const answers = new Map();
  let answered = 0;
  let end = performance.now();

  const onResponse = (status, body) => {
    answered++;
    end = performance.now();
    if (status !== 200) return;
    const receipt = JSON.parse(body);
    add(answers, receipt.sku);
    if (receipt.sold) add(sold, receipt.sku);
  };
  const purchases = skus.map((sku) => ({ method: 'POST', body: JSON.stringify({ sku }), onResponse }));
  let connections = 0;
  const setupClient = (client) => {
    // Each connection has the next URL; after all URLs the first SKU is another one, so that each pair occurs.
    const first = Math.floor(connections++ / urls.length) % skus.length;
    client.setRequests([...purchases.slice(first), ...purchases.slice(0, first)]);
  };
  // In one line of a terminal, else a line now and then.
  const progress = (ending) => {
    const line = `  ${title.padEnd(5)} ${String(Math.floor((100 * answered) / requests)).padStart(3)} % of ${requests} requests`;
    stderr.write(stderr.isTTY ? `\r${line}${ending}` : `${line}\n`);
  };

  const headers = { 'content-type': 'application/json' };
  const options = { url: urls, method: 'POST', headers, amount: requests, connections: concurrency, timeout: TIMEOUT, sampleInt: 100 };
  progress('');
  const timer = setInterval(progress, stderr.isTTY ? 200 : 5_000, '');
  const start = performance.now();
  try {
    const { latency } = await autocannon({ ...options, requests: purchases, setupClient });
    return { sold, answers, seconds: (end - start) / 1000, p50: latency.p50, p99: latency.p99 };
  } finally {
    clearInterval(timer);
    progress('\n');
  }
}

function add(counts, sku) {
  counts.set(sku, (counts.get(sku) ?? 0) + 1);
}
