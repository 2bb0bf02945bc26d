import { forgeryIn } from '../../lib/dashboard/same-origin.js';

const ORDER = { 'content-type': 'application/json', 'x-lock-dashboard': '1' };

it.each([
  [{ 'sec-fetch-site': 'same-origin', host: 'app' }],
  [{ host: 'app' }],
  [{ origin: 'https://app', host: 'app' }],
  [{ origin: 'https://app', ':authority': 'app' }],
  [{ origin: 'https://ops', host: 'app' }],
  [{ origin: 'https://ops', host: 'app', 'sec-fetch-site': 'cross-site' }],
])('the page itself sends %j', (headers) => {
  expect(forgeryIn({ ...ORDER, ...headers }, 'POST', ['https://ops'])).toBeUndefined();
});

it.each([
  [{ 'sec-fetch-site': 'cross-site', host: 'app' }],
  [{ 'sec-fetch-site': 'same-site', origin: 'https://app', host: 'app' }],
  [{ 'sec-fetch-site': 'cross-site', origin: 'null', ':authority': 'app' }],
  [{ 'sec-fetch-site': 'cross-site', origin: 'http://app', host: 'app' }],
  [{ 'sec-fetch-site': 'none', host: 'app' }],
  [{ origin: 'null' }],
  [{ origin: 'https://evil', host: 'app' }],
  [{ referer: 'http://evil/page', host: 'app' }],
])('another site sends %j', (headers) => {
  expect(forgeryIn({ ...ORDER, ...headers }, 'POST', ['https://ops'])).toBe('The request is from another site.');
});

it.each([
  [{ host: 'app' }, 'The header x-lock-dashboard is missing.'],
  [{ host: 'app', referer: 'http://evil/page' }, 'The request is from another site.'],
  [{ host: 'app', 'x-lock-dashboard': '1' }, undefined],
])('over plain HTTP, a request with %j', (headers, expected) => expect(forgeryIn(headers, 'GET')).toBe(expected));
