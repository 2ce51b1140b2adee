# syntax=docker/dockerfile:1

# The image of the agent. Two targets:
#
#   docker build -t dra-exporter .                        with NVML: glibc, cgo
#   docker build -t dra-exporter:static --target static . no vendor libraries
#
# For several architectures: docker buildx build --platform linux/amd64,linux/arm64 .
#
# Both run as an unprivileged user by default. The DaemonSet runs the agent as
# root, without capabilities, because the kubelet's socket is root's.

ARG GO_VERSION=1.26.8

FROM --platform=$BUILDPLATFORM golang:${GO_VERSION}-bookworm AS source
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .

# Compiled on the builder's own architecture: emulating a compiler is slow.
FROM source AS build
ARG BUILDARCH TARGETARCH
ARG VERSION=unknown REVISION=unknown
RUN if [ "$TARGETARCH" != "$BUILDARCH" ]; then \
      apt-get update && apt-get install -y --no-install-recommends "crossbuild-essential-$TARGETARCH"; \
    fi
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    case "$TARGETARCH" in \
      amd64) cc=x86_64-linux-gnu-gcc ;; \
      arm64) cc=aarch64-linux-gnu-gcc ;; \
      *) echo "no compiler known for $TARGETARCH" >&2; exit 1 ;; \
    esac; \
    CGO_ENABLED=1 GOARCH=$TARGETARCH CC=$cc go build -trimpath \
      -ldflags "-s -w -extldflags=-Wl,-z,lazy \
        -X github.com/prometheus/common/version.Version=$VERSION \
        -X github.com/prometheus/common/version.Revision=$REVISION" \
      -o /dra-exporter ./cmd/dra-exporter

FROM source AS build-static
ARG TARGETARCH
ARG VERSION=unknown REVISION=unknown
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOARCH=$TARGETARCH go build -trimpath \
      -ldflags "-s -w \
        -X github.com/prometheus/common/version.Version=$VERSION \
        -X github.com/prometheus/common/version.Revision=$REVISION" \
      -o /dra-exporter ./cmd/dra-exporter

FROM gcr.io/distroless/static-debian12:nonroot AS static
LABEL org.opencontainers.image.source=https://github.com/dra-exporter/dra-exporter \
      org.opencontainers.image.licenses=Apache-2.0
COPY --from=build-static /dra-exporter /dra-exporter
EXPOSE 9420
ENTRYPOINT ["/dra-exporter"]

# The last stage is the default: glibc, for libraries that are opened at run
# time, of the Debian that the builder stage has too.
FROM gcr.io/distroless/base-debian12:nonroot
LABEL org.opencontainers.image.source=https://github.com/dra-exporter/dra-exporter \
      org.opencontainers.image.licenses=Apache-2.0
COPY --from=build /dra-exporter /dra-exporter
EXPOSE 9420
ENTRYPOINT ["/dra-exporter"]
