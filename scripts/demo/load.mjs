import autocannon from 'autocannon';
import { showProgress } from './progress.mjs';

/** Seconds. Under a lock the last of many waits long, and a request that is given up tells nothing. */
const TIMEOUT = 900;

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
    // Connections take turns with the URLs; the first SKU changes once all URLs had their turn, so that each pair occurs.
    const first = Math.floor(connections++ / urls.length) % skus.length;
    client.setRequests([...purchases.slice(first), ...purchases.slice(0, first)]);
  };

  const headers = { 'content-type': 'application/json' };
  const start = performance.now();
  const stopProgress = showProgress(title, requests, () => answered);
  try {
    const options = { url: urls, method: 'POST', headers, amount: requests, connections: concurrency, timeout: TIMEOUT, sampleInt: 100 };
    const { latency } = await autocannon({ ...options, requests: purchases, setupClient });
    return { sold, answers, seconds: (end - start) / 1000, p50: latency.p50, p99: latency.p99 };
  } finally {
    stopProgress();
  }
}

function add(counts, sku) {
  counts.set(sku, (counts.get(sku) ?? 0) + 1);
}
