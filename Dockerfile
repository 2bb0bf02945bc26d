# The shop of sample-app: docker compose --profile shop up --build
ARG NODE=node:24-slim

FROM ${NODE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.esm.json tsconfig.cjs.json tsconfig.types.json ./
COPY scripts scripts
COPY lib lib
COPY sample-app/package.json sample-app/tsconfig.json sample-app/
COPY sample-app/src sample-app/src
RUN npm run build && npx tsc -p sample-app
RUN npm pack --ignore-scripts && mv nestjs-distributed-lock-*.tgz library.tgz

FROM ${NODE}
ENV NODE_ENV=production
WORKDIR /shop
COPY sample-app/package.json ./
COPY --from=build /app/library.tgz ./
# The library of this folder, not the one of its package.json.
RUN npm install --omit=dev --no-audit --no-fund ./library.tgz
COPY --from=build /app/sample-app/dist dist
USER node
CMD ["node", "dist/main.js"]
