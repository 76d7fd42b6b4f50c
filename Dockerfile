# docker build -t crd-controller:0.1.0 .       (hack/image/build.sh also records the sources)
#
# --build-arg BUILD_IMAGE= and RUNTIME_IMAGE= select other base images, by name or by digest: any with a
# recent Node.js 24, also distroless ones without a shell. The defaults are pinned by digest. To get the
# digest of a newer tag: docker buildx imagetools inspect node:TAG --format '{{.Manifest.Digest}}'
ARG BUILD_IMAGE=node:24.21.0-trixie-slim@sha256:8ec5d7557396cfe32d21c3f9c13072355ceab22b584578ca4bb28af31120cffe
ARG RUNTIME_IMAGE=node:24.21.0-trixie-slim@sha256:8ec5d7557396cfe32d21c3f9c13072355ceab22b584578ca4bb28af31120cffe

FROM ${BUILD_IMAGE} AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
# No install scripts of packages; the bundle needs none.
RUN npm ci --ignore-scripts
COPY . .
ARG REVISION
ARG SOURCE_DATE_EPOCH
RUN node hack/bundle.ts
# The code caches are valid for the Node.js of this stage; another one starts without them. Only these files
# differ from build to build: --build-arg CODE_CACHE= omits them.
ARG CODE_CACHE=yes
RUN [ -z "$CODE_CACHE" ] || node hack/image/code-cache.ts dist/image

FROM ${RUNTIME_IMAGE}
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="crd-controller" \
      org.opencontainers.image.description="A Kubernetes controller daemon, written in TypeScript" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# PATH contains the folders of node in Docker's own images, in most others, and in distroless ones. NODE_OPTIONS
# limits the heap to a share of the container's memory limit; the rest is for code, buffers and stacks. It also
# halves the young generation, which saves a fifth of the memory under load. In the ENTRYPOINT the options would
# override those of users; here users can replace them. MALLOC_ARENA_MAX limits the memory that glibc keeps for
# each thread.
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/nodejs/bin \
    NODE_ENV=production \
    MALLOC_ARENA_MAX=2 \
    NODE_OPTIONS="--max-old-space-size-percentage=65 --max-semi-space-size=8"
WORKDIR /app
COPY --from=build /src/dist/image/ ./
USER 65532:65532
# No shell and no npm in between, because signals must reach the program. A signal cannot open a debugger. On
# a fatal error, for example out of memory, Node.js writes a report without the environment to /tmp. (It
# ignores --diagnostic-dir then and would write to /app, which is read-only.)
ENTRYPOINT ["node", "--disable-proto=delete", "--disable-sigusr1", \
            "--report-on-fatalerror", "--report-exclude-env", "--report-exclude-network", "--report-directory=/tmp", \
            "/app/crd-controller.mjs"]
