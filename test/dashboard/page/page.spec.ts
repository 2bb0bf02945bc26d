import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { page, scriptHash, styleHash } from '../../../lib/dashboard/page.generated.js';

const hashOf = (text = ''): string => `sha256-${createHash('sha256').update(text).digest('base64')}`;

it('the page is one file with one script and one style, whose hashes its policy can name', () => {
  expect(page.match(/<(script|style)\b/g)).toEqual(['<style', '<script']);
  expect(hashOf(/<style>(.*)<\/style>/s.exec(page)?.[1])).toBe(styleHash);
  expect(hashOf(/<script>(.*)<\/script>/s.exec(page)?.[1])).toBe(scriptHash);
});

it('the page asks no other host for anything, and has no style attribute, which the policy forbids', () => {
  expect(page).not.toMatch(/(https?:)?\/\/[\w-]+\.\w|@import|url\((?!#)/);
  expect(page).not.toMatch(/<[^>]*\sstyle=/);
});

it('the page keeps the licence of lit-html, and is 40 KB at most, 16 KB compressed', () => {
  expect(page).toContain('Copyright 2017 Google LLC');
  expect(Buffer.byteLength(page)).toBeLessThanOrEqual(40_000);
  expect(gzipSync(page).length).toBeLessThanOrEqual(16_384);
});
