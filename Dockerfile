# The image of Péage. It is built with all packages and contains only those that production needs.
# `npm run image:replay` tests this file without Docker.
FROM node:24.21.0-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Scripts are skipped: `prepare` would build before the sources are copied, and no dependency needs its own scripts.
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY src ./src
COPY migrations ./migrations
COPY console ./console
COPY scripts/build-program.mjs scripts/build-console.mjs scripts/prepare-database.mjs \
    scripts/fill-compile-cache.mjs scripts/import-built.mjs scripts/replace-files.mjs ./scripts/
RUN npm run build
# Node looks for the compile cache in a folder whose name ends in the user ID, which is 1000 in the image. By default,
# other users cannot read the files.
RUN for kept in dist/compile-cache/*; do mv "$kept" "${kept%-*}-1000"; done && chmod -R a+rX dist/compile-cache

FROM node:24.21.0-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --ignore-scripts

FROM node:24.21.0-bookworm-slim
# A password hash needs 19 MiB. With MALLOC_MMAP_THRESHOLD_, glibc returns them to the system and does not keep them per
# thread.
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
# The folder of the embedded database. The gateway writes to no other folder. With DATABASE_URL, it writes to none.
RUN install -d -o node -g node -m 700 /data
VOLUME /data
# The user `node` as a number, because Kubernetes can check runAsNonRoot only with a number.
USER 1000:1000
EXPOSE 8080
STOPSIGNAL SIGTERM
# The health check sends a request to the admin listener. If you change admin.listen, also set PEAGE_HEALTH_URL.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["node", "-e", "fetch(process.env.PEAGE_HEALTH_URL).then(answer => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/app/dist/cli.js"]
CMD ["start"]
