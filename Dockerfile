# The shop of sample-app: docker compose --profile shop up --build
ARG NODE=node:24-slim

FROM ${NODE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.esm.json tsconfig.cjs.json nest-cli.json ./
COPY scripts scripts
COPY lib lib
COPY sample-app/tsconfig.json sample-app/
COPY sample-app/src sample-app/src
RUN npm run build && npm run build:sample

# What the shop imports of the devDependencies, in the versions of the lock file.
FROM build AS packages
RUN npm install --save-prod --ignore-scripts --prefer-offline @nestjs/common @nestjs/core @nestjs/platform-express @nestjs/schedule \
    class-transformer class-validator ioredis reflect-metadata rxjs \
  && npm prune --omit=dev --ignore-scripts

FROM ${NODE}
ENV NODE_ENV=production
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
COPY --from=build /app/package.json ./
COPY --from=build /app/dist dist
COPY --from=build /app/sample-app/dist sample-app/dist
USER node
CMD ["node", "sample-app/dist/main.js"]
