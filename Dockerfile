# Péage, built with everything and shipped with what production needs. `npm run image:replay` tries it without Docker.
FROM node:24.21.0-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Without scripts: `prepare` would build before there are sources, and no dependency needs one to run.
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY src ./src
COPY migrations ./migrations
COPY console ./console
COPY scripts/build-program.mjs scripts/build-console.mjs scripts/prepare-database.mjs \
    scripts/fill-compile-cache.mjs scripts/import-built.mjs scripts/replace-files.mjs ./scripts/
RUN npm run build
# Node names the folder by the number of its user, whose files nobody else may read: the image's user is 1000.
RUN for kept in dist/compile-cache/*; do mv "$kept" "${kept%-*}-1000"; done && chmod -R a+rX dist/compile-cache

FROM node:24.21.0-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --ignore-scripts

FROM node:24.21.0-bookworm-slim
# MALLOC_…: the 19 MiB of a password hash go back to the system, which glibc would keep for each thread that hashed.
ENV NODE_ENV=production \
    MALLOC_MMAP_THRESHOLD_=1048576 \
    PEAGE_DATA_DIR=/data \
    PEAGE_HEALTH_URL=http://127.0.0.1:8081/healthz
WORKDIR /app
COPY --from=packages /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY package.json gateway.yaml gateway.schema.json LICENSE ./
COPY assets ./assets
COPY migrations ./migrations
# The embedded database's folder, and the only one that is written to; unused where DATABASE_URL names a Postgres.
RUN install -d -o node -g node -m 700 /data
VOLUME /data
# By number, which Kubernetes' runAsNonRoot can tell from root: it is the image's user `node`.
USER 1000:1000
EXPOSE 8080
STOPSIGNAL SIGTERM
# Asks the admin listener of gateway.yaml: set PEAGE_HEALTH_URL where admin.listen is another.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["node", "-e", "fetch(process.env.PEAGE_HEALTH_URL).then(answer => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/app/dist/cli.js"]
CMD ["start"]
