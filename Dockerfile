# docker build -t crd-controller:0.1.0 .       (hack/image/build.sh says what it was built from as well)
#
# --build-arg BUILD_IMAGE= and RUNTIME_IMAGE= select other base images, by name or by digest: any with a
# recent Node.js 24, also distroless ones without a shell. The defaults are pinned by digest; to get the
# digest of a newer tag: docker buildx imagetools inspect node:TAG --format '{{.Manifest.Digest}}'
ARG BUILD_IMAGE=node:24.21.0-trixie-slim@sha256:8ec5d7557396cfe32d21c3f9c13072355ceab22b584578ca4bb28af31120cffe
ARG RUNTIME_IMAGE=node:24.21.0-trixie-slim@sha256:8ec5d7557396cfe32d21c3f9c13072355ceab22b584578ca4bb28af31120cffe

FROM ${BUILD_IMAGE} AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
# No package gets to run code here; none of those that the bundle needs wants to.
RUN npm ci --ignore-scripts
COPY . .
ARG REVISION
ARG SOURCE_DATE_EPOCH
RUN node hack/bundle.ts

FROM ${RUNTIME_IMAGE}
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="crd-controller" \
      org.opencontainers.image.description="A Kubernetes controller daemon, written in TypeScript" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# PATH: where images keep node, Docker's own and most others, and distroless. NODE_OPTIONS: the heap gets
# its share of the container's memory limit, whatever that is; the rest is code, buffers and stacks. In
# the ENTRYPOINT it would win over every --max-old-space-size; here it can be replaced.
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/nodejs/bin \
    NODE_ENV=production \
    NODE_OPTIONS=--max-old-space-size-percentage=65
WORKDIR /app
COPY --from=build /src/dist/image/ ./
USER 65532:65532
# No shell and no npm in between: signals must reach the program. Nobody can open a debugger by a signal,
# and when Node.js itself gives up, out of memory for example, it writes a report to /tmp, without the
# environment. (Of --diagnostic-dir it takes no notice then: it would write to /app, which is read-only.)
ENTRYPOINT ["node", "--enable-source-maps", "--disable-proto=delete", "--disable-sigusr1", \
            "--report-on-fatalerror", "--report-exclude-env", "--report-exclude-network", "--report-directory=/tmp", \
            "/app/crd-controller.mjs"]
