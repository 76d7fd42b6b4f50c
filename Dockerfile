# docker build -t crd-controller .
#
# Both images can be chosen, by --build-arg BUILD_IMAGE= and RUNTIME_IMAGE=: any with Node.js 22.19 or
# newer will do, also distroless ones without a shell. Pin what you deploy by digest.
ARG BUILD_IMAGE=node:24.21.0-trixie-slim
ARG RUNTIME_IMAGE=node:24.21.0-trixie-slim

FROM ${BUILD_IMAGE} AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
# No package gets to run code here; none of those that the bundle needs wants to.
RUN npm ci --ignore-scripts
COPY . .
RUN node hack/bundle.ts

FROM ${RUNTIME_IMAGE}
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="crd-controller" \
      org.opencontainers.image.description="A Kubernetes controller daemon, written in TypeScript" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# Where images keep node: Docker's own and most others, distroless.
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/nodejs/bin \
    NODE_ENV=production
WORKDIR /app
COPY --from=build /src/dist/image/ ./
USER 65532:65532
# No shell and no npm in between: signals must reach the program.
ENTRYPOINT ["node", "--enable-source-maps", "--disable-proto=delete", "/app/crd-controller.mjs"]
