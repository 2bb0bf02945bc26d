// As `nest new` writes it (@nestjs/schematics 12, the ESM application).
import tsconfigPaths from 'vite-tsconfig-paths';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  plugins: [tsconfigPaths()],
  test: {
    globals: true,
    root: './',
    include: ['**/*.test.ts'],
  },
});
