# Two images: `docker build --target pdp .` and `docker build --target sidecar .`
# Without an engine, `node bin/dev/image/dockerfile.ts FOLDER` carries out the same steps and says how large they are.
# The PDP's holds the command line too. Each holds the code that its program can reach and the packages that this code imports (bin/dev/image/assemble.ts).
FROM node:24-bookworm-slim AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY . .
RUN node_modules/.bin/tsc -p tsconfig.build.json \
 && node bin/dev/image/assemble.ts pdp /out/pdp \
 && node bin/dev/image/assemble.ts command /out/pdp \
 && node bin/dev/image/sbom.ts /out/pdp > /out/pdp/sbom.json \
 && node bin/dev/image/assemble.ts sidecar /out/sidecar \
 && node bin/dev/image/sbom.ts /out/sidecar > /out/sidecar/sbom.json

# No shell, no package manager; user 65532; nothing is written, so the root may be read-only.
FROM gcr.io/distroless/nodejs24-debian12:nonroot AS base
# The sidecar's command in a Pod says `node`, wherever the base image keeps it.
ENV PATH=/nodejs/bin:/usr/local/bin:/usr/bin:/bin NODE_ENV=production
WORKDIR /app
USER 65532:65532

FROM base AS pdp
COPY --from=build --chown=0:0 /out/pdp /app
EXPOSE 8080 9090 9091
ENTRYPOINT ["node", "--max-semi-space-size=16", "/app/pdp/bin.js"]

FROM base AS sidecar
COPY --from=build --chown=0:0 /out/sidecar /app
EXPOSE 15080 15094
ENTRYPOINT ["node", "--max-old-space-size-percentage=50", "--max-semi-space-size=8", "/app/sidecar/bin.js"]
