import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { programOf } from '../../support/services.js';
import { startPageServer, type Play } from './page-server.js';

const WATCH = `addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => console.error('CSP', violatedDirective, blockedURI))`;

/** A browser for the tests of a file. A test fails if one of its tabs throws, or breaks the Content-Security-Policy. */
export function useBrowser() {
  let browser: Browser;
  let problems: string[] = [];
  let ends: (() => Promise<void>)[] = [];
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: await programOf('chromium'), args: ['--no-sandbox'] });
  });
  afterEach(async () => {
    for (const end of ends.reverse()) await end();
    const found = problems;
    [ends, problems] = [[], []];
    expect(found).toEqual([]);
  });
  afterAll(() => browser?.close());
  return {
    /** A server of the page, which ends with the test. */
    async serve(play?: Play) {
      const server = await startPageServer(play);
      ends.push(() => server.close());
      return server;
    },
    /** A tab of its own browser profile, which ends with the test. */
    async open(url: string, options?: BrowserContextOptions) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
      ends.push(() => context.close());
      // Shorter than the limit of a test, so that a failure says what it has waited for.
      context.setDefaultTimeout(100_000);
      const page = await context.newPage();
      page.on('pageerror', (error) => problems.push(String(error)));
      // The browser also writes here which requests have failed, which is part of some tests.
      page.on(
        'console',
        (message) => void (message.type() === 'error' && !/Failed to load resource/.test(message.text()) && problems.push(message.text())),
      );
      await page.addInitScript(WATCH);
      await page.goto(url);
      await page.locator('#rows').waitFor();
      return page;
    },
  };
}

/** The text of the element that has the focus. */
export function focused(page: Page): Promise<string> {
  return page.evaluate<string>('document.activeElement.textContent.trim()');
}

/** The keys in the order of the screen. */
export function keysOn(page: Page): Promise<string[]> {
  return page.locator('#rows tbody tr td:first-child button').allTextContents();
}
